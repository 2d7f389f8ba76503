"""Avro files: how they are read and written, and the schemas Java declares in them."""
