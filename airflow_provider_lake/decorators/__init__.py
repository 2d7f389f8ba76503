"""Decorators that make functions tasks on lake tables; see docs/decorators.md."""
