"""The install steps of the image, in an empty virtual environment of this machine."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_image_s_steps_give_an_airflow_that_knows_the_provider(tmp_path):
    target = tmp_path / "venv"
    kept = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    environment |= {"PYTHON": sys.executable, "AIRFLOW_HOME": str(tmp_path / "airflow")}

    def run(*words):
        done = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(ROOT / "docker" / "install.sh", target)

    assert "airflow-provider-lake" in run(target / "bin" / "airflow", "providers", "list")
    assert (target / "bin" / "spark-class").is_file()
    says = (
        "import importlib.metadata as m; print(m.version('pyspark') == m.version('pyspark-client'))"
    )
    assert run(target / "bin" / "python", "-c", says).strip() == "True"
