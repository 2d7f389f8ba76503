# SPDX-License-Identifier: Apache-2.0
"""Makes the first metadata of a new table."""
