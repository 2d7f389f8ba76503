# SPDX-License-Identifier: Apache-2.0
"""Old names of arguments, which still work for one release, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["renamed_argument"]

P = ParamSpec("P")
R = TypeVar("R")


def renamed_argument(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function whose keyword argument was renamed from ``old`` to ``new``.

    The decorated function accepts both names. A call with ``old`` gives a ``DeprecationWarning``; a
    call with ``old`` and ``new`` raises ``TypeError``.
    """

    def accept(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given: dict[str, Any] = kwargs
            if old in given:
                if new in given:
                    raise TypeError(
                        f"{function.__qualname__}() got {new!r} and its old name {old!r}: "
                        f"give {new!r} alone"
                    )
                warnings.warn(
                    f"{function.__qualname__}({old}=...) is deprecated: write {new}=...",
                    DeprecationWarning,
                    stacklevel=2,
                )
                given[new] = given.pop(old)
            return function(*args, **kwargs)

        return call

    return accept
