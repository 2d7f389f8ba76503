"""Connections to a lake."""
