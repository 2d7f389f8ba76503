# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE of single rows: find their files, and write the replacement."""
