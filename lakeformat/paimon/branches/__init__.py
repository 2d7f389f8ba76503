"""Branches: other histories over the same data files; made, forwarded, renamed and deleted."""
