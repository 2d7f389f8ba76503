"""File indexes of data files that are there already: added, built anew, and taken away."""
