"""Tables in the Apache Paimon format: what lies on storage, and every operation on it."""
