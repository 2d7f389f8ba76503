# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the worker of a deferred task, and end when no task asks for them."""
