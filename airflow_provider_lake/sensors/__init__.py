# SPDX-License-Identifier: Apache-2.0
"""Sensors for tables; each can wait in the triggerer."""
