"""The job ``ingest`` on Spark, whose driver is held where it publishes."""

import os
import sys

from held_commit import hold_commits

from spark_jobs import ingest

hold_commits(os.environ["TEST_SIGNS"], os.environ["TEST_MOMENT"])
sys.exit(ingest.main())
