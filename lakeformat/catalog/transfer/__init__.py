"""Copies tables, and makes tables of directories of plain files."""
