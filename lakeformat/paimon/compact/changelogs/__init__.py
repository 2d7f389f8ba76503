# SPDX-License-Identifier: Apache-2.0
"""Changelogs that compactions write."""
