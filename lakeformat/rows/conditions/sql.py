# SPDX-License-Identifier: Apache-2.0
"""Parses conditions in SQL (the text after WHERE) to the same tree that ``col`` builds."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from typing import Any

from sqlglot import Dialect, errors, exp, tokens

from lakeformat.errors import InvalidRequestError
from lakeformat.rows.conditions.moments import TimestampText, plain_moment
from lakeformat.rows.conditions.predicate import (
    ESCAPE,
    And,
    Compare,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakeformat.rows.prune import Op

__all__ = ["parse_predicate"]

_CAN = (
    "a condition compares columns with values by =, <>, <, <=, >, >=, IN, BETWEEN, LIKE and "
    "IS NULL, joined by AND, OR, NOT and parentheses"
)
_NAMES = ("column", "dot")
"""The kinds of the parser's nodes for names; a name of more than four parts has the kind
``dot``.
"""
_TIME_DIGITS = 6
_COMPARISONS = {
    "eq": Op.EQUAL,
    "neq": Op.NOT_EQUAL,
    "lt": Op.LESS,
    "lte": Op.LESS_EQUAL,
    "gt": Op.GREATER,
    "gte": Op.GREATER_EQUAL,
}
_TURNED = {
    Op.EQUAL: Op.EQUAL,
    Op.NOT_EQUAL: Op.NOT_EQUAL,
    Op.LESS: Op.GREATER,
    Op.LESS_EQUAL: Op.GREATER_EQUAL,
    Op.GREATER: Op.LESS,
    Op.GREATER_EQUAL: Op.LESS_EQUAL,
}


def _time(text: str) -> time:
    if _digits(text) > _TIME_DIGITS:
        raise ValueError(text)
    return time.fromisoformat(text)


def _timestamp(text: str) -> TimestampText:
    return TimestampText(plain_moment(text))


def _digits(text: str) -> int:
    """Return the number of digits in the fraction of a second, without zeros at its end."""
    fraction = re.search(r"[.,](\d*)", text)
    return len(fraction[1].rstrip("0")) if fraction else 0


_MOMENTS: dict[str, Callable[[str], Any]] = {
    "DATE": date.fromisoformat,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMPTZ": _timestamp,
    "TIMESTAMPLTZ": _timestamp,
    "TIMESTAMPNTZ": _timestamp,
    "DATETIME": _timestamp,
}


def parse_predicate(text: str) -> Predicate:
    """Return the condition of a SQL text.

    Names may be quoted with ``"`` or backticks; texts are quoted with ``'``. Raise
    InvalidRequestError, which quotes the unsupported part, for SQL that is not a condition.
    """
    if not text.strip():
        raise InvalidRequestError(f"the condition is empty; {_CAN}")
    try:
        return _PredicateReader(text).predicate(exp.condition(text, dialect=_Conditions))
    except errors.ParseError as reason:
        places = [e for e in reason.errors if e.get("highlight")]
        near = f" near {places[0]['highlight']!r} (character {places[0]['col']})" if places else ""
        raise InvalidRequestError(f"{text!r} is not a SQL condition{near}; {_CAN}") from None
    except errors.SqlglotError as reason:
        raise InvalidRequestError(f"{text!r} is not a SQL condition: {reason}; {_CAN}") from None
    except RecursionError:
        raise InvalidRequestError(
            f"the condition {text[:40]!r}… is nested too deep: write IN (…) in place of many "
            "ORs, or divide it into several calls"
        ) from None


class _Conditions(Dialect):
    """A SQL dialect that also accepts backticks around names, and bytes such as ``X'1F'``."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as its base class has it
        HEX_STRINGS = [("x'", "'"), ("X'", "'")]  # noqa: RUF012


class _PredicateReader:
    """Converts the parser's tree to predicates.

    An error quotes the part of the SQL text that is not supported.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def predicate(self, node: exp.Expr) -> Predicate:
        found = self._positive(node)
        # The parser puts a NOT LIKE inside of a NOT.
        said_of = node.this if node.key == "escape" else node
        return Not(found) if said_of.args.get("negate") else found

    def _positive(self, node: exp.Expr) -> Predicate:
        match node.key:
            case "paren":
                return self.predicate(node.this)
            case "and" | "or":
                parts = tuple(self.predicate(part) for part in node.flatten())
                return And(parts) if node.key == "and" else Or(parts)
            case "not":
                return Not(self.predicate(node.this))
            case "boolean" | "null":
                return Constant(self._value(node))
            case "column" | "dot":
                return Compare(self._column(node), Op.EQUAL, True)
            case "in" if node.expressions and not node.args.get("query"):
                values = tuple(self._value(value) for value in node.expressions)
                return IsIn(self._column(node.this), values)
            case "between" if not node.args.get("symmetric"):
                column = self._column(node.this)
                low, high = (self._value(node.args[end]) for end in ("low", "high"))
                return And(
                    (Compare(column, Op.GREATER_EQUAL, low), Compare(column, Op.LESS_EQUAL, high))
                )
            case "is":
                return self._is(node)
            case "like" | "escape":
                return self._like(node)
            case key if key in _COMPARISONS:
                return self._compare(node, _COMPARISONS[key])
        raise self._refuse(node)

    def _compare(self, node: exp.Expr, op: Op) -> Predicate:
        left, right = node.this, node.expression
        if left.key not in _NAMES and right.key in _NAMES:
            left, right, op = right, left, _TURNED[op]
        return Compare(self._column(left), op, self._value(right))

    def _is(self, node: exp.Expr) -> Predicate:
        """Return the condition of ``IS NULL``, ``IS TRUE`` or ``IS FALSE``.

        For a null, ``IS TRUE`` is false but ``= TRUE`` is unknown.
        """
        column, value = self._column(node.this), node.expression
        if value.key == "null":
            return IsNull(column)
        if value.key == "boolean":
            return And((Compare(column, Op.EQUAL, self._value(value)), Not(IsNull(column))))
        raise self._refuse(node)

    def _like(self, node: exp.Expr) -> Predicate:
        escape = ESCAPE
        if node.key == "escape":
            node, said = node.this, self._value(node.expression)
            if node.key != "like" or not isinstance(said, str) or len(said) != 1:
                raise self._refuse(node)
            escape = said
        pattern = self._value(node.expression)
        if not isinstance(pattern, str):
            raise self._refuse(node)
        return Like(self._column(node.this), pattern, escape)

    def _column(self, node: exp.Expr) -> str:
        parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
        if not parts or any(part.key != "identifier" for part in parts):
            raise self._refuse(node)
        return ".".join(part.name for part in parts)

    def _value(self, node: exp.Expr) -> Any:
        match node.key:
            case "paren":
                return self._value(node.this)
            case "null":
                return None
            case "boolean":
                return bool(node.this)
            case "literal":
                return str(node.this) if node.is_string else Decimal(node.this)
            case "hexstring":
                return self._bytes(node)
            case "neg":
                found = self._value(node.this)
                if isinstance(found, Decimal):
                    return found.copy_negate()
            case "cast" if node.this.is_string:
                return self._moment(node)
        raise self._refuse(node)

    def _moment(self, node: exp.Expr) -> Any:
        """Return the value of a typed text such as ``DATE '2024-01-31'``, which the parser reports
        as a cast.
        """
        kind = node.args["to"].this.name
        read = _MOMENTS.get(kind)
        if read is None:
            raise self._refuse(node)
        precision = node.args["to"].expressions
        if precision and _digits(node.this.name) > int(precision[0].name):
            raise InvalidRequestError(
                f"{node.this.sql()} in {self._text!r} has more fractional digits than "
                f"{kind}({precision[0].name}) keeps: write at most {precision[0].name}"
            )
        try:
            return read(node.this.name)
        except (OverflowError, ValueError):
            raise InvalidRequestError(
                f"{node.this.sql()} in {self._text!r} is not a valid {kind}; valid are "
                "DATE '2024-01-31', TIME '10:30:00.123456' and TIMESTAMP '2024-01-31 10:30:00'"
            ) from None

    def _bytes(self, node: exp.Expr) -> bytes:
        try:
            return bytes.fromhex(str(node.this))
        except ValueError:
            raise InvalidRequestError(
                f"X'{node.this}' in {self._text!r} is not a value of bytes: write two hexadecimal "
                "digits for each byte, as in X'0AFF'"
            ) from None

    def _refuse(self, node: exp.Expr) -> InvalidRequestError:
        return InvalidRequestError(
            f"{node.sql()} in {self._text!r} is not supported: {_CAN}; "
            "dates are written '2024-01-31', bytes X'0AFF'"
        )
