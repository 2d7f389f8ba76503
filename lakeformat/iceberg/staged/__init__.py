# SPDX-License-Identifier: Apache-2.0
"""Staged results: files that one job writes and another job publishes."""
