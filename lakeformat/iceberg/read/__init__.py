# SPDX-License-Identifier: Apache-2.0
"""Plans and reads scans of Iceberg tables."""
