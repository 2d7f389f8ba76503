# SPDX-License-Identifier: Apache-2.0
"""Changes between snapshots, read once or as a stream."""
