"""Plots the answer to a question as bars, with the baseline as a line."""

from __future__ import annotations

from pathlib import Path

from benchmarks.answer import Answer, Spread, cpu_seconds, wall_seconds

__all__ = ["write_plot"]

CLOCKS = (("CPU", cpu_seconds, "#8fb8d6", -0.2), ("wall", wall_seconds, "#d3e3ef", 0.2))


def write_plot(path: Path, title: str, answer: Answer) -> None:
    """Draw each candidate's median ratio, with the range of its rounds."""
    from matplotlib.figure import Figure  # half a second, which --list and --help need not wait

    compared = [name for name in answer.timings if name != answer.baseline]
    # Not pyplot: a figure needs no screen, and Agg draws it.
    figure = Figure(figsize=(8, 1.6 + 0.8 * len(compared)), layout="constrained")
    axes = figure.subplots()
    for label, clock, colour, offset in CLOCKS:
        spreads = [Spread.of(answer.ratios(candidate, clock)) for candidate in compared]
        places = [place + offset for place in range(len(compared))]
        axes.barh(
            places,
            [spread.median for spread in spreads],
            height=0.36,
            color=colour,
            xerr=[
                [spread.median - spread.low for spread in spreads],
                [spread.high - spread.median for spread in spreads],
            ],
            ecolor="#555555",
        )
        for place, spread in zip(places, spreads, strict=True):
            axes.text(0.01, place, f"{label} {spread.median:.2f}", va="center")
    axes.axvline(1, color="#b03a2e", linewidth=1.5)
    axes.set_yticks(range(len(compared)), compared)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time of {answer.baseline} (red line) / own time: more is faster")
    axes.set_title(title, fontsize=10, wrap=True)
    figure.savefig(path, dpi=110)
