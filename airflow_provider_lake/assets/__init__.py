"""Tables as assets: their URIs, the events they have, and what a task reads of them."""
