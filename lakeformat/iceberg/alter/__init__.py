# SPDX-License-Identifier: Apache-2.0
"""Changes to the columns and properties of a table, in one commit of metadata."""
