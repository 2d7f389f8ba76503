"""Writing: from whatever holds rows to durable data files, ready for the commit."""
