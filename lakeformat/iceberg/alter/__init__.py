# SPDX-License-Identifier: Apache-2.0
"""Changes of the columns and the properties of a table, in one commit of metadata."""
