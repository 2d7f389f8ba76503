# SPDX-License-Identifier: Apache-2.0
"""Orphan files, missing files, and hints that are wrong."""
