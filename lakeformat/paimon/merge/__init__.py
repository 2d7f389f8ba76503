"""What becomes of several rows with one key: the order they come in, and the engines."""
