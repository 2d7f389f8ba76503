# SPDX-License-Identifier: Apache-2.0
"""Decides which partitions of a Mixed table are to be optimized, and how, by Amoro's rules."""
