"""Floating-point numbers are printed as Java prints them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeformat.types.java_numbers import java_double_text, java_float_text


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-324, "4.9E-324"),
        (1e-323, "1.0E-323"),
        (9.5e-323, "9.4E-323"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (2.225073858507201e-308, "2.225073858507201E-308"),
        (2.98023223876953125e-8, "2.9802322387695312E-8"),
        (2e-3, "0.002"),
        (1e22, "1.0E22"),
        (1e23, "9.999999999999999E22"),
        (2e23, "1.9999999999999998E23"),
        (8.41e21, "8.409999999999999E21"),
        (5.902872113232237e16, "5.9028721132322368E16"),
        (3.7464019948129453e25, "3.7464019948129452E25"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_double_has_the_digits_that_java_8_to_18_prints(value, text):
    assert java_double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.4e-45, "1.4E-45"),
        (9.8e-45, "9.8E-45"),
        (1.1e-44, "1.1E-44"),
        (1.17549435e-38, "1.17549435E-38"),
        (1.1754942e-38, "1.1754942E-38"),
        (9.140509e8, "9.1405088E8"),
        (1.0631728e16, "1.06317277E16"),
        (-4.3669895e25, "-4.3669894E25"),
        (6.2223877e-16, "6.2223877E-16"),
        (33554432.0, "3.3554432E7"),
    ],
)
def test_a_float_has_the_digits_that_java_8_to_18_prints(value, text):
    assert java_float_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float_leads_back_to_it(value):
    assert np.float32(java_float_text(value)) == np.float32(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_leads_back_to_the_number(value):
    assert float(java_double_text(value)) == value
