# SPDX-License-Identifier: Apache-2.0
"""The metadata files of a table: one module reads and writes one kind of file."""
