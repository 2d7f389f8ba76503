"""Errors of PyIceberg's clients become errors of this library."""

from __future__ import annotations

import pytest
from thrift.transport.TTransport import TTransportException

import lakeformat as lake
from lakeformat.catalog.iceberg.client_failure import Failures


@pytest.mark.parametrize("error", [TimeoutError(), TTransportException()])
def test_an_error_without_a_text_is_named_by_its_class(error):
    name = type(error).__name__
    with (
        pytest.raises(lake.UnavailableError, match=rf"tables in thrift://host:1: {name}\. Check"),
        Failures("thrift://host:1", ()).translated("list the tables"),
    ):
        raise error
