"""Files nothing leads to, files that are led to and gone, and hints that lead nowhere."""
