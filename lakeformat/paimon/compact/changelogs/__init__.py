"""Changelogs that compactions write of the keys they see."""
