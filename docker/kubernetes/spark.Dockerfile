# Spark with the jobs, on the Python of the workers: drivers and executors run it.
#
#     .venv/bin/python -m pip wheel --no-deps --wheel-dir dist . && .venv/bin/lake package dist
#     docker build -f docker/kubernetes/spark.Dockerfile -t registry.example.org/lake-spark:0.4.0 .
FROM apache/spark:4.1.3 AS spark

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 185 --gid 0 --create-home spark
COPY --from=spark /opt/spark /opt/spark
COPY --from=spark /opt/entrypoint.sh /opt/
COPY dist/airflow_provider_lake-0.4.0-py3-none-any.whl dist/lake_job.py /opt/lake/
# The extra spark is left out: the image has Spark, and only pandas is missing.
RUN pip install --no-cache-dir "pandas>=2.2,<3" \
    "/opt/lake/airflow_provider_lake-0.4.0-py3-none-any.whl[s3]"
ENV SPARK_HOME=/opt/spark PYSPARK_PYTHON=python3 PYSPARK_DRIVER_PYTHON=python3
USER 185
WORKDIR /opt/spark/work-dir
ENTRYPOINT ["/opt/entrypoint.sh"]
