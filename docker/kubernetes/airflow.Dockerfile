# The official image with the provider: its entrypoint is what the official Helm chart calls.
#
#     .venv/bin/python -m pip wheel --no-deps --wheel-dir dist .
#     docker build -f docker/kubernetes/airflow.Dockerfile -t registry.example.org/lake-airflow:0.4.0 .
FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
USER airflow

COPY dist/airflow_provider_lake-0.4.0-py3-none-any.whl /tmp/
RUN pip install --no-cache-dir apache-airflow-providers-cncf-kubernetes \
    "/tmp/airflow_provider_lake-0.4.0-py3-none-any.whl[airflow,spark,s3]"
