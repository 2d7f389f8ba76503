# SPDX-License-Identifier: Apache-2.0
"""Spark processes that a task starts, watches and ends."""
