"""Reading: which files a snapshot consists of, and their rows."""
