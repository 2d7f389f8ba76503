"""Around every job: its command line, its process, its tasks, and how far it has come."""
