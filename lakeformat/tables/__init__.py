"""What is done to tables of any format."""
