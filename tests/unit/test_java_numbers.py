"""Floating-point numbers are printed as Java prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.java_numbers import java_double_text, java_float_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1.5e-300, "1.5E-300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (100.0, "100.0"),
        (123456.789, "123456.789"),
    ],
)
def test_a_double_is_printed_plainly_or_with_a_power_of_ten(value, text):
    assert java_double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1e10, "1.0E10"), (3.4028235e38, "3.4028235E38")]
)
def test_a_float_is_printed_with_the_digits_a_float_has(value, text):
    assert java_float_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_leads_back_to_the_number(value):
    assert float(java_double_text(value)) == value
