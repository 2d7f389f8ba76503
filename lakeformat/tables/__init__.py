"""The contract of a table of any format, and work on many tables."""
