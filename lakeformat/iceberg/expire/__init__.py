# SPDX-License-Identifier: Apache-2.0
"""Expiry of snapshots: a commit removes the snapshots, then the files that only they needed are
deleted.
"""
