"""Files of rows: Parquet, ORC, Avro and text; independent of tables."""
