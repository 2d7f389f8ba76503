# SPDX-License-Identifier: Apache-2.0
"""Writes rows to data files, and publishes the files as snapshots."""
