# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the worker of a deferred task, and end once no task waits for them."""
