# SPDX-License-Identifier: Apache-2.0
"""Branches and tags: created, moved and deleted by commits that change metadata alone."""
