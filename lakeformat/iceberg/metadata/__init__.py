# SPDX-License-Identifier: Apache-2.0
"""The metadata files of a table: its JSON, manifest lists and manifests."""
