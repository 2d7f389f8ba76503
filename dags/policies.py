# SPDX-License-Identifier: Apache-2.0
"""Builds the DAGs of ``lake.yaml``: the maintenance of every table in that file, by its settings.

Prerequisites: the connection ``lake_default`` names the warehouse. Change the tables and their
steps in ``lake.yaml`` beside this file; docs/templates.md explains each setting.

The idea: a platform team describes the maintenance of every table in one file, and the DAGs are
built from it. The same file always gives the same DAGs, and parsing it opens no table.
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_lake.maintenance.dags import lake_dags

# Airflow only loads a file that contains the words DAG and airflow.
globals().update(lake_dags(Path(__file__).with_name("lake.yaml")))
