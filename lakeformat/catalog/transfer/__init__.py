"""Tables from elsewhere: copies of other tables, and directories of plain files."""
