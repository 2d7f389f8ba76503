"""ORC files: how they are read and written, and looked at before Arrow's library trusts them."""
