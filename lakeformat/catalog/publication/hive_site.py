# SPDX-License-Identifier: Apache-2.0
"""Reads the address of a Hive metastore from Hive's configuration file hive-site.xml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from lakeformat.catalog.publication.connection_options import CONF_DIR
from lakeformat.errors import UnsupportedError

__all__ = ["with_address"]

_FILE, _NAME = "hive-site.xml", "hive.metastore.uris"
_URI = "uri"


def with_address(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without ``hive-conf-dir``.

    If ``uri`` is missing, it is read from hive-site.xml in the directory ``hive-conf-dir``. A file
    that cannot be read or has no address raises ``UnsupportedError``.
    """
    found = {key: value for key, value in options.items() if key != CONF_DIR}
    if CONF_DIR in options and not found.get(_URI):
        found[_URI] = _address_in(Path(options[CONF_DIR]) / _FILE)
    return found


def _address_in(file: Path) -> str:
    try:
        content = file.read_bytes()
        if b"<!DOCTYPE" in content:
            raise ValueError("it has a DOCTYPE, which is not accepted")
        root = ElementTree.fromstring(content)
    except (OSError, ValueError, ElementTree.ParseError) as reason:
        raise UnsupportedError(
            f"{file}, to which 'metadata.iceberg.{CONF_DIR}' leads, cannot be read: {reason}. Name "
            "the metastore by 'metadata.iceberg.uri' instead"
        ) from None
    for each in root.iter("property"):
        if (each.findtext("name") or "").strip() == _NAME:
            return (each.findtext("value") or "").strip()
    raise UnsupportedError(
        f"{file} does not name {_NAME}: name the metastore by 'metadata.iceberg.uri' instead"
    )
