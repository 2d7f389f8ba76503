# SPDX-License-Identifier: Apache-2.0
"""Batches of a Mixed table: they take a transaction when they begin, and commit later."""
