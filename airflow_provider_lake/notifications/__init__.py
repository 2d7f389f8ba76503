# SPDX-License-Identifier: Apache-2.0
"""Notifiers, for callbacks of tasks and DAGs, and for deadline alerts."""
