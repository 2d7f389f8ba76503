# SPDX-License-Identifier: Apache-2.0
"""Files of other programs: CSV, JSON lines and Parquet, read the same way by every caller."""
