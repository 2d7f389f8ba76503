"""Data files: writing rows into files of the target size, and reading them back."""
