"""Change messages in JSON lines: Debezium, Canal and Maxwell, read as columns."""
