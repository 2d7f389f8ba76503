# SPDX-License-Identifier: Apache-2.0
"""Writes changes of rows to the change store of a Mixed table."""
