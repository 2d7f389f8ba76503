"""Rows from files, SQL databases, messages and other tables, on their way into a table."""
