# SPDX-License-Identifier: Apache-2.0
"""File indexes of existing data files: added, rebuilt and removed."""
