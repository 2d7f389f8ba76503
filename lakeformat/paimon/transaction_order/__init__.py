# SPDX-License-Identifier: Apache-2.0
"""Commits a batch with ``conflict="transaction-order"``, and keeps rows that other commits have
changed since the snapshot from which the batch was computed.
"""
