"""File indexes of existing data files: added, built again, and removed."""
