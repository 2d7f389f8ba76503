"""Another number of buckets for rows that are there."""
