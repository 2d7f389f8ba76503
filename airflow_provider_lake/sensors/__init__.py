# SPDX-License-Identifier: Apache-2.0
"""Sensors for tables; all of them can wait in the triggerer."""
