# SPDX-License-Identifier: Apache-2.0
"""Merges the changes of a Mixed table into its base store, as an optimizing of Amoro does."""
