"""The images and the compose file: what they name exists, is pinned, and holds no secret.

Whether an engine accepts them is not shown here; the steps that install the image are a script,
and `tests/stack/test_install.py` runs it.
"""

import re
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which Airflow brings")

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
SECRET = re.compile(r"PASSWORD|SECRET|FERNET|ACCESS_KEY|SQL_ALCHEMY_CONN")
DIGEST = "sha256:[0-9a-f]{64}"
ONCE = {name for name, service in SERVICES.items() if service.get("restart") == "on-failure"}


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_pinned_and_nobody_s_root(name):
    service = SERVICES[name]
    image, _, tag = service["image"].partition(":")
    assert image
    assert re.search(r"\d+\.\d+|\d{4}-\d\d-\d\d", tag), tag
    assert image == "airflow-provider-lake" or re.search(rf"@{DIGEST}$", tag), tag
    assert service["user"].partition(":")[0] not in ("root", "0")


def test_all_that_keeps_running_says_whether_it_is_well():
    assert [
        name for name in SERVICES if name not in ONCE and "healthcheck" not in SERVICES[name]
    ] == []


def test_each_service_waits_for_services_that_can_become_what_it_waits_for():
    for service in SERVICES.values():
        for other, wanted in service.get("depends_on", {}).items():
            ends = wanted["condition"] == "service_completed_successfully"
            assert ends == (other in ONCE), other


def test_what_is_built_and_mounted_exists():
    named = {*COMPOSE["volumes"]}
    for service in SERVICES.values():
        if build := service.get("build"):
            assert (DOCKER / build["context"] / build["dockerfile"]).is_file()
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in named or (DOCKER / source).exists(), source
    assert (ROOT / "dags").is_dir()


def test_no_secret_is_written_down():
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if SECRET.search(name) or "secret-key" in str(value):
                assert "${" in value, name
    assert not re.search(r"(?i)(ENV|ARG).*(password|secret|token)", DOCKERFILE)


def test_every_variable_the_compose_file_asks_for_is_made(tmp_path):
    script = tmp_path / "make_env.sh"
    script.write_text((DOCKER / "make_env.sh").read_text())
    script.chmod(0o755)
    subprocess.run([script], check=True, capture_output=True)

    made = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())

    asked = {*re.findall(r"\$\{(\w+)", (DOCKER / "compose.yaml").read_text())}
    assert asked == {*made}
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    assert len(made["AIRFLOW_JWT_SECRET"]) >= 64
    assert subprocess.run([script], check=False, capture_output=True).returncode == 2


def test_the_image_copies_what_there_is_and_runs_as_nobody_special():
    kept = (ROOT / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in kept, f"{source} is kept out of the build"
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE) == ["50000"]
    assert re.search(rf"^FROM \S+:\d+\.\d+\.\d+\S*@{DIGEST}$", DOCKERFILE, re.MULTILINE)


def test_the_steps_of_the_image_are_the_script_that_is_tested():
    assert "docker/install.sh" in DOCKERFILE
    assert "pip install" not in DOCKERFILE
    for script in ("install.sh", "make_env.sh"):
        subprocess.run(["sh", "-n", DOCKER / script], check=True)
