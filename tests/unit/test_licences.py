"""The page of licences names what users install, and never a copyleft package without a note."""

from __future__ import annotations

import importlib.metadata
from email.message import Message

import pytest

from docs import licences_page


def metadata(**fields: str | list[str]) -> Message:
    message = Message()
    for name, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            message[name.replace("_", "-")] = each
    return message


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ({"License_Expression": "MIT", "License": "another"}, "MIT"),
        ({"Classifier": ["Topic :: X", "License :: OSI Approved :: MIT License"]}, "MIT License"),
        ({"Classifier": ["License :: B", "License :: A"]}, "A; B"),
        ({"License": "BSD-3-Clause"}, "BSD-3-Clause"),
        ({"License": "UNKNOWN"}, "not stated"),
        ({"License": "Permission is granted\nto all"}, "not stated"),
        ({}, "not stated"),
    ],
)
def test_a_licence_is_the_expression_else_the_classifiers_else_a_short_field(
    monkeypatch, stated, shown
):
    monkeypatch.setattr(importlib.metadata, "metadata", lambda _: metadata(**stated))
    assert licences_page.licence("some") == shown


def test_a_copyleft_package_without_a_note_stops_the_page(monkeypatch):
    monkeypatch.delitem(licences_page.NOTES, "psycopg2-binary")
    with pytest.raises(ValueError, match=r"not both: psycopg2-binary\. .*NOTES"):
        licences_page.licences_page("")


def test_a_note_on_a_package_that_is_no_longer_installed_stops_the_page(monkeypatch):
    monkeypatch.setitem(licences_page.NOTES, "gone", "It was LGPL.")
    with pytest.raises(ValueError, match=r"not both: gone\. "):
        licences_page.licences_page("")


def test_packages_of_development_are_apart_from_what_users_install():
    users, _, development = licences_page.licences_page("").partition("## For development alone")
    assert "| pyarrow | " in users
    assert "| pytest | " in development
    assert "| pytest | " not in users
