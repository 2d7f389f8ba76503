# SPDX-License-Identifier: Apache-2.0
"""Changes of a table's schema: their definition, their checks, and their result.

``apply.py`` reads and writes no file; ``paimon/metadata/schema_file.py`` publishes the new schema.
"""
