# SPDX-License-Identifier: Apache-2.0
"""Index files: deleted rows, the keys of a bucket, and places of values."""
