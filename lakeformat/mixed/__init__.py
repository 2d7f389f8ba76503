# SPDX-License-Identifier: Apache-2.0
"""Tables in Amoro's Mixed-Iceberg format: a change store and a base store, read as one table."""
