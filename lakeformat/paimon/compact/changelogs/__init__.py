"""Changelogs that compactions write."""
