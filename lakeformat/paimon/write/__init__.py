# SPDX-License-Identifier: Apache-2.0
"""Writing: turns rows into durable data files that are ready for a commit."""
