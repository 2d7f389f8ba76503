# SPDX-License-Identifier: Apache-2.0
"""Rescaling: distributes existing rows to another number of buckets."""
