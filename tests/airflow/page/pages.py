"""Helpers of the page tests: a task, rows, and the visible text of a page."""

from html.parser import HTMLParser
from types import SimpleNamespace

import pyarrow as pa

import lakeformat as lake

TASK = SimpleNamespace(dag_id="paged", run_id="manual__1+a", task_id="g.tidy", map_index=-1)
TASK_PATH = "/lake/tasks/paged/manual__1+a/g.tidy/%7BMAP_INDEX%7D"  # as Airflow's interface asks


def write(table, *ids, user=None):
    rows = pa.table({"id": list(ids), "item": ["tea"] * len(ids)})
    commit = None if user is None else lake.CommitId(user, 1)
    return table.write(rows, commit=commit)


class Words(HTMLParser):
    """The text of a page, and the elements it has."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.pieces = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.pieces.append(data)


def words(answer):
    return " ".join(" ".join(Words(answer.text).pieces).split())
