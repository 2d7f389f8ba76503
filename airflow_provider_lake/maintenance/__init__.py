"""Upkeep as DAGs: steps in the right order for a table, and DAGs from a file of policies."""
