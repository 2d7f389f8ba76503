"""Reads and writes Avro files, with the schemas that Java declares in them."""
