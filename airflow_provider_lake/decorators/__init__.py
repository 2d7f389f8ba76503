"""Functions of a DAG file as tasks on lake tables; see docs/decorators.md."""
