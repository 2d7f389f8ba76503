"""Tasks that wait for a table; all of them can wait in the triggerer."""
