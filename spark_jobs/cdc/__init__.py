"""Change messages as JSON lines: Debezium, Canal and Maxwell, read in columns."""
