# SPDX-License-Identifier: Apache-2.0
"""Batches of a Mixed table, whose transaction number is assigned when they begin."""
