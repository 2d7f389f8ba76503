"""The command line ``lake``: the library by hand, for people at a terminal and for scripts."""

from lakeformat.cli.app import main

__all__ = ["main"]
