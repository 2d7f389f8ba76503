# SPDX-License-Identifier: Apache-2.0
"""Changes to a table's schema: their definition, their checks, and their result.

``apply.py`` is pure; ``paimon/metadata/schema_file.py`` publishes its result.
"""
