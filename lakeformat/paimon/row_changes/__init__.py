# SPDX-License-Identifier: Apache-2.0
"""DELETE and UPDATE by condition: find the files with matching rows, and write their
replacement.
"""
