# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE by condition: finds the files with matching rows, and writes new files."""
