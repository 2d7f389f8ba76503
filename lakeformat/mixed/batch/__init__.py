# SPDX-License-Identifier: Apache-2.0
"""Batches of a Mixed table: each gets its transaction number when it begins."""
