# SPDX-License-Identifier: Apache-2.0
"""Branches and tags of Iceberg tables; a change of them publishes new metadata but no snapshot."""
