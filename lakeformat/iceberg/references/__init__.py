# SPDX-License-Identifier: Apache-2.0
"""Branches and tags of Iceberg tables; changing one publishes new metadata but no snapshot."""
