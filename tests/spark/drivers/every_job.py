"""A driver that brings rows in from each source in tasks, and has tasks look after the tables.

every_job.py MASTER WAREHOUSE FOLDER
"""

import json
import sys

import spark_jobs
from spark_jobs import ingest, remove_orphans, rescale


def main() -> None:
    master, warehouse, folder = sys.argv[1:]
    spark = spark_jobs.session("every job", master=master, warehouse=warehouse)

    def done(job, table, **more):
        request = {"warehouse": warehouse, "table": f"shop.{table}", "engine": "spark", **more}
        return job.run(request, spark)

    done(ingest, "days", source=f"{folder}/days-*.csv")
    done(ingest, "stock", source=f"{folder}/stock-*.json", format="maxwell-json")
    follow = {"source_table": "shop.days", "consumer": "copy", "create": True}
    done(ingest, "copy", **follow)
    done(ingest, "days", source=f"{folder}/later-*.csv")
    followed = done(ingest, "copy", **follow)
    rescaled = done(rescale, "copy", bucket=2)
    orphans = done(remove_orphans, "days", dry_run=False)
    told = {
        "changes": followed["report"]["rows"],
        "rescaled": len(rescaled["report"]["partitions"]),
        "removed": orphans["report"]["removed_files"],
        "rows": {
            name: spark_jobs.read_table(spark, f"shop.{name}").count()
            for name in ("days", "stock", "copy")
        },
        "same": spark_jobs.read_table(spark, "shop.days")
        .exceptAll(spark_jobs.read_table(spark, "shop.copy"))
        .isEmpty(),
    }
    print("TOLD " + json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
