"""Aggregate functions value by value, as slow and as plain as in the specification.

A ROW is a dict, a MAP a list of pairs, as in ``pyarrow.Table.to_pylist``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from math import copysign, isnan, nan
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np

__all__ = ["Aggregator", "ModelError", "names_of", "ordered"]

WIDTHS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
COMPACT_PRECISION = 18
"""Up to so many digits Java adds decimals as longs and does not look whether they still fit."""


class ModelError(Exception):
    """Java refuses this merge."""


def ordered(value: Any) -> Any:
    """Return the sort key of Java: -0.0 is below 0.0, NaN above everything."""
    if isinstance(value, float):
        return (isnan(value), 0.0 if isnan(value) else value, copysign(1, value))
    return value


def names_of(text: str) -> list[str]:
    """A list of names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


class Aggregator:
    """One function on one column during one merge; it remembers whether it has locked."""

    def __init__(self, function: str, type_text: str, options: Mapping[str, str]) -> None:
        """``options`` are those of the column, without ``fields.<column>.``."""
        self.function = {"first_not_null_value": "first_non_null_value"}.get(function, function)
        self.type, self.options, self.locked = type_text.removesuffix(" NOT NULL"), options, False
        self.distinct = options.get("distinct") == "true"

    def agg(self, acc: Any, new: Any) -> Any:
        """``acc`` after an insert of ``new``."""
        if self.function in ("last_value", "primary-key"):
            return new
        if self.function in ("first_value", "first_non_null_value"):
            if self.locked or (new is None and self.function == "first_non_null_value"):
                return acc
            self.locked = True
            return new
        if self.function == "last_non_null_value":
            return acc if new is None else new
        if self.function == "listagg":
            return self._listagg(acc, new)
        if self.function == "collect" and self.distinct and not acc is new is None:
            return _unique([*(acc or []), *(new or [])])
        if self.function in ("nested_update", "nested_partial_update") and new is not None:
            return self._nested(acc or [], new)
        if acc is None or new is None:
            return new if acc is None else acc
        return self._both(acc, new)

    def agg_reversed(self, acc: Any, new: Any) -> Any:
        """``acc`` after an insert that is older than it."""
        return self.agg(acc, new) if self.function == "collect" else self.agg(new, acc)

    def retract(self, acc: Any, new: Any) -> Any:
        """``acc`` after ``new`` is taken back."""
        if self.options.get("ignore-retract") == "true":
            return acc
        match self.function:
            case "primary-key":
                return new
            case "last_value":
                return None
            case "last_non_null_value":
                return acc if new is None else None
            case "sum":
                if acc is None or new is None:
                    return acc if new is None else self._negated(new)
                return self._number(sub, acc, new)
            case "product":
                return acc if acc is None or new is None else self._divide(acc, new)
            case "collect" | "nested_update" | "merge_map":
                return acc if acc is None or new is None else self._take_out(acc, new)
        raise ModelError(f"{self.function} does not retract")

    def _both(self, acc: Any, new: Any) -> Any:
        match self.function:
            case "sum":
                return self._number(add, acc, new)
            case "product":
                return self._number(mul, acc, new)
            case "max":
                return max(acc, new, key=ordered)
            case "min":
                return min(acc, new, key=ordered)
            case "bool_and":
                return acc and new
            case "bool_or":
                return acc or new
            case "collect":
                return [*acc, *new]
            case "merge_map":
                return list({**dict(acc), **dict(new)}.items())
            case "merge_map_with_keytime":
                return self._by_time(acc, new)
        raise AssertionError(self.function)

    def _number(self, operation: Callable[[Any, Any], Any], acc: Any, new: Any) -> Any:
        if self.type in WIDTHS:
            result, limit = operation(acc, new), 1 << (WIDTHS[self.type] - 1)
            if not -limit <= result < limit:
                raise ModelError(f"{result} is not of type {self.type}")
            return result
        if self.type in ("FLOAT", "DOUBLE"):
            kind = np.float32 if self.type == "FLOAT" else np.float64
            with np.errstate(all="ignore"):
                result = float(operation(kind(acc), kind(new)))
                return nan if isnan(result) else result
        precision, scale = map(int, re.findall(r"\d+", self.type))
        with localcontext(prec=100):
            result = operation(acc, new).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
        unchecked = precision <= COMPACT_PRECISION and operation in (add, sub)
        return result if unchecked or result.adjusted() < precision - scale else None

    def _negated(self, new: Any) -> Any:
        """Zero has a sign, if it is a float."""
        return -new if isinstance(new, float) else self._number(sub, type(new)(0), new)

    def _divide(self, acc: Any, new: Any) -> Any:
        if self.type in WIDTHS:
            if new == 0:
                raise ModelError("division by zero")
            quotient = abs(acc) // abs(new)
            return quotient if (acc < 0) == (new < 0) else -quotient
        if isinstance(acc, Decimal) and (new == 0 or not _ends(Fraction(acc) / Fraction(new))):
            raise ModelError(f"{acc} / {new} does not end")
        return self._number(truediv, acc, new)

    def _listagg(self, acc: str | None, new: str | None) -> str | None:
        if new is None or not new.strip():
            return acc
        if acc is None or not acc.strip():
            return new
        delimiter = self.options.get("list-agg-delimiter", ",")
        tokens = new.split(delimiter) if self.distinct else [new]
        for token in tokens:
            if not self.distinct or (token.strip() and token not in acc.split(delimiter)):
                acc += delimiter + token
        return acc

    def _by_time(self, acc: Any, new: Any) -> Any:
        merged = dict(acc)
        for key, row in new:
            if row is None:
                merged.pop(key, None)
                continue
            field = self.options.get("ts-field") or list(row)[-1]
            if row[field] is not None:
                stored = merged.get(key) or {field: None}
                if stored[field] is None or row[field] > stored[field]:
                    merged[key] = row
        return list(merged.items())

    def _nested(self, acc: list[Any], new: list[Any]) -> list[Any]:
        limit = int(self.options.get("count-limit", 1 << 31))
        acc, new = ([row for row in rows if row is not None] for rows in (acc, new))
        if "nested-key" not in self.options:
            return [*acc, *new[: max(limit - len(acc), 0)]]
        found: dict[Any, Any] = {}
        sequence = names_of(self.options.get("nested-sequence-field", ""))
        for position, row in enumerate([*acc, *new]):
            key = self._nested_key(row)
            if self._leaves_out(row):
                continue
            if key not in found:
                if position < len(acc) or len(found) < limit:
                    found[key] = row
            elif self.function == "nested_partial_update":
                found[key] = found[key] | {n: v for n, v in row.items() if v is not None}
            elif _rank(row, sequence) >= _rank(found[key], sequence):
                found[key] = row
        return list(found.values())

    def _nested_key(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(repr(row[name]) for name in names_of(self.options["nested-key"]))

    def _leaves_out(self, row: Mapping[str, Any]) -> bool:
        strategy = self.options.get("nested-key-null-strategy", "merge")
        has_null = any(row[name] is None for name in names_of(self.options["nested-key"]))
        if has_null and strategy == "error":
            raise ModelError("null in a nested key")
        return has_null and strategy == "ignore"

    def _take_out(self, acc: Any, new: Any) -> Any:
        if self.function == "merge_map":
            return [entry for entry in acc if entry[0] not in dict(new)]
        if self.function == "collect":
            left = [repr(element) for element in new]
            return [e for e in acc if repr(e) not in left or left.remove(repr(e))]  # type: ignore[func-returns-value]
        acc, new = ([row for row in rows if row is not None] for rows in (acc, new))
        if "nested-key" not in self.options:
            return [row for row in acc if repr(row) not in map(repr, new)]
        left = {self._nested_key(row): row for row in acc}
        for row in new:
            left.pop(self._nested_key(row), None)
        return list(left.values())


def _ends(number: Fraction) -> bool:
    """True if it has finitely many digits."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _unique(elements: list[Any]) -> list[Any]:
    return list({repr(element): element for element in elements}.values())


def _rank(row: Mapping[str, Any], names: list[str]) -> list[Any]:
    return [(row[name] is not None, ordered(row[name])) for name in names]
