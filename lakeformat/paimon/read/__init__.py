"""Reading a snapshot: its data files and their rows."""
