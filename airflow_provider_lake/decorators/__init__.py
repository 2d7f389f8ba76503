# SPDX-License-Identifier: Apache-2.0
"""Decorators that make functions tasks on lake tables; see docs/decorators.md."""
