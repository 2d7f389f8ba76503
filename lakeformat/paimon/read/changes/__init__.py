# SPDX-License-Identifier: Apache-2.0
"""Reads changes between snapshots, once or as a stream."""
