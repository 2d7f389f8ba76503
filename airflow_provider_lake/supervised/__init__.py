# SPDX-License-Identifier: Apache-2.0
"""Supervised processes, which outlive the worker of a deferred task, and end if no task or trigger
waits for them.
"""
