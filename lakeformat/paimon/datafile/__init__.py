# SPDX-License-Identifier: Apache-2.0
"""Data files: writing rows into files of the target size, and reading them back."""
