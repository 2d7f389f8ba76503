# SPDX-License-Identifier: Apache-2.0
"""Decorators that turn functions into tasks on lake tables; see docs/decorators.md."""
