"""The statements of a source file: a tenth of its nodes, and all that some checks read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["statements"]

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every statement, at any depth, with the handlers and cases that hold some."""
    blocks: list[ast.AST] = [tree]
    while blocks:
        block = blocks.pop()
        for name in _BLOCKS:
            inside = getattr(block, name, ())
            if isinstance(inside, list):  # a lambda and a conditional expression have one value
                yield from inside
                blocks += inside
