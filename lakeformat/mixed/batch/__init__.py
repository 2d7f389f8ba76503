# SPDX-License-Identifier: Apache-2.0
"""Batches of a Mixed table: they take a place in the order of transactions, and commit later."""
