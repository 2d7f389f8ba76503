# SPDX-License-Identifier: Apache-2.0
"""Files of rows in Parquet, ORC, Avro, CSV and JSON; knows no table."""
