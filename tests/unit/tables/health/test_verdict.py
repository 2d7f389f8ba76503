"""The verdict and the score of a table come from one rule."""

import pytest

from lakeformat.tables.health.verdict import Reason, Verdict, judge

A_REASON = Reason("40 small files", "lake compact shop.orders")
SEVERE = Reason("a file is missing", "restore it", is_severe=True)


@pytest.mark.parametrize(
    ("reasons", "points", "verdict", "score"),
    [
        ((), 100, Verdict.HEALTHY, 100),
        ((), 44, Verdict.HEALTHY, 90),
        ((A_REASON,), 100, Verdict.DEGRADED, 89),
        ((A_REASON,), 60, Verdict.DEGRADED, 60),
        ((A_REASON,), 49, Verdict.UNHEALTHY, 49),
        ((A_REASON, SEVERE), 100, Verdict.UNHEALTHY, 49),
        ((SEVERE,), 7, Verdict.UNHEALTHY, 7),
    ],
)
def test_the_score_stays_within_the_scores_of_its_verdict(reasons, points, verdict, score):
    assert judge(reasons, points, is_empty=False) == (verdict, score)


def test_a_table_without_a_commit_is_empty_unless_something_is_wrong():
    assert judge((), 100, is_empty=True) == (Verdict.EMPTY, 100)
    assert judge((SEVERE,), 100, is_empty=True) == (Verdict.UNHEALTHY, 49)


@pytest.mark.parametrize("points", range(0, 101, 10))
def test_scores_of_two_verdicts_never_overlap(points):
    def score(*reasons):
        return judge(reasons, points, is_empty=False)[1]

    assert score(SEVERE) < 50
    assert score(A_REASON) < 90 <= score()
