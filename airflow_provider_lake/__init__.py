# SPDX-License-Identifier: Apache-2.0
"""Lake tables in Airflow; importing this package loads neither Spark nor the data libraries."""
