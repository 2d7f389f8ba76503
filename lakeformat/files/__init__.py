"""Files of rows: Parquet, ORC, Avro and text; nothing here knows a table."""
