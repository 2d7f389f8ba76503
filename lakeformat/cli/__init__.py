# SPDX-License-Identifier: Apache-2.0
"""The command line ``lake``, for people at a terminal and for scripts."""

from lakeformat.cli.app import main

__all__ = ["main"]
