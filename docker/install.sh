#!/bin/sh
# Installs the provider with Airflow, Spark, S3 and PostgreSQL into a new virtual environment.
#
#     docker/install.sh /opt/lake/venv
#
# The image runs it, and so does a test, in an empty directory: what is proven there is what the image has.
# Needs Python 3.11 (another by PYTHON=...); Spark also wants a Java 17 or newer when it runs.
set -eu

target=${1:?"say where the environment goes: docker/install.sh /opt/lake/venv"}
project=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")

"${PYTHON:-python3.11}" -m venv "$target"
install() {
    "$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}
# The versions every test runs with, as files with the hashes in there. The project comes after them:
# pip takes no folder where it checks hashes.
install --require-hashes --requirement "$project/requirements/image.txt"
install --no-deps --no-build-isolation "$project"
# Bytecode once, on all cores, not at the start of every task.
"$target/bin/python" -m compileall -q -j 0 "$target/lib" >/dev/null || true
"$target/bin/python" -c "import lakeformat, spark_jobs, airflow_provider_lake, pyspark"
