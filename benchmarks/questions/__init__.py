"""One module per question; its ``QUESTION`` is found by listing this folder."""
