# SPDX-License-Identifier: Apache-2.0
"""Files of rows: Parquet, ORC, Avro and text; independent of tables."""
