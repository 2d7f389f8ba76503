# SPDX-License-Identifier: Apache-2.0
"""File indexes of existing data files: adds missing ones, rebuilds them, and removes unneeded
ones.
"""
