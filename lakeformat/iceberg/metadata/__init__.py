# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the metadata of a table: JSON metadata files, manifest lists and manifests."""
