# SPDX-License-Identifier: Apache-2.0
"""Reading a snapshot: its data files and their rows."""
