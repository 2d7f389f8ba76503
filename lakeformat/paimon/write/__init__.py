# SPDX-License-Identifier: Apache-2.0
"""Writes rows to durable data files, which are ready for a commit."""
