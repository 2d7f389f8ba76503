# SPDX-License-Identifier: Apache-2.0
"""Rescaling: existing rows in another number of buckets."""
