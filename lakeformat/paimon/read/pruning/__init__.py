"""What a scan leaves out because nothing in it can meet the conditions."""
