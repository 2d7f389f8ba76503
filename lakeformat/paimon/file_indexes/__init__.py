"""File indexes of existing data files: added, rebuilt and removed."""
