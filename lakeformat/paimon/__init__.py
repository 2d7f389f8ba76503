"""Tables in the Apache Paimon format: their files on storage, and every operation on them."""
