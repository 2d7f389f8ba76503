"""The DAGs of ``lake.yaml``: upkeep of every table it names, as it says.

Prerequisites: the connection ``lake_default`` names the warehouse. Change the tables and what is
done for them in ``lake.yaml`` beside this file; docs/templates.md explains each setting.

The one idea: a platform team states what every table gets, once, and the DAGs follow. The same
file always gives the same DAGs, and parsing it opens no table.
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_lake.maintenance.dags import lake_dags

# Airflow looks for the words DAG and airflow in a file before it loads it.
globals().update(lake_dags(Path(__file__).with_name("lake.yaml")))
