"""One module for each question, which defines ``QUESTION``."""
