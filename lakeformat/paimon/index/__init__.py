# SPDX-License-Identifier: Apache-2.0
"""Index files: deletion vectors, hashes of the keys of a bucket, and file indexes of column
values.
"""
