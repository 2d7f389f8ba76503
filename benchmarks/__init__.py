"""Questions about speed and memory, asked of this library and of a floor or peer in one run."""
