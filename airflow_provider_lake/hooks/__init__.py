"""Hooks for lakes."""
