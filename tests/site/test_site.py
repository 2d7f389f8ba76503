"""The pages of docs/ build as a site: MkDocs warns of lost pages, links and headings."""

import subprocess

import pytest

from tests.own_environment import own_python
from tests.tutorial_page import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; it does not build with a warning."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [own_python("site"), "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_has_the_tutorial_and_the_signature_of_an_operator(site):
    assert "Get started in 15 minutes" in (site / "tutorial.html").read_text()
    operators = (site / "reference" / "api-airflow.html").read_text()
    assert 'id="airflow_provider_lake.operators.compact.LakeCompactOperator"' in operators


def test_the_reference_lists_the_methods_that_a_class_inherits(site):
    page = (site / "reference" / "api.html").read_text()
    for method in ("Table.compact", "Table.rollback", "IcebergTable.scan", "IcebergTable.compact"):
        assert f'id="lakeformat.{method}"' in page


def test_a_link_to_a_template_leads_to_a_page_with_its_code(site):
    assert "project/dags/ingest_orders.py.html" in (site / "templates.html").read_text()
    assert "LakeIngestOperator" in (site / "project/dags/ingest_orders.py.html").read_text()


def test_pages_load_nothing_from_other_hosts(site):
    page = (site / "index.html").read_text()
    assert 'src="http' not in page
    assert '<link rel="stylesheet" href="http' not in page
