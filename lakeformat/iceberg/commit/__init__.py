# SPDX-License-Identifier: Apache-2.0
"""Publishes changed table metadata, by the optimistic protocol."""
