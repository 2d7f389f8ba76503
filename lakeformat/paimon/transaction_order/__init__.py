# SPDX-License-Identifier: Apache-2.0
"""Commits of batches that keep the rows which streams have changed since the batch began."""
