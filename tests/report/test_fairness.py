"""What the page says of fairness and starvation, and its charts of types, waits and fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.report import charts, comparison_page, curves, fairness, page

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome

MIXED = wt.ClusterSpec((wt.NodeType(2, 4, "A"), wt.NodeType(2, 2, "B")), "mixed")


def flights(**more: Any) -> dict[str, Outcome]:
    rng = np.random.default_rng(1)
    count = 80
    jobs = {
        "submit_time": np.sort(rng.integers(0, 4000, count)),
        "duration": rng.integers(60, 900, count),
        "num_gpus": rng.choice([1, 2, 4], count),
        "user": [f"u{i % 5}" for i in range(count)],
    }
    return wt.compare(jobs, MIXED, ["fifo", "sjf"], queueing="skip", **more).outcomes


@pytest.fixture(scope="module")
def mixed() -> dict[str, Outcome]:
    return flights()


def test_fairness_has_a_row_a_number_and_its_difference(mixed: dict[str, Outcome]) -> None:
    table = fairness.fairness_table(mixed)
    assert table is not None
    assert table.columns == ["fifo", "sjf"]
    assert [line.label for line in table.lines][:2] == ["\u03c1, mean", "\u03c1, median"]
    for line, measure in zip(table.lines, fairness.FAIRNESS, strict=True):
        values = [outcome.fairness()[measure.key] for outcome in mixed.values()]
        assert [cell.text for cell in line.cells] == [measure.text(value) for value in values]
    assert table.lines[0].cells[1].verdict in ("better", "worse")


def test_runs_in_which_nothing_finished_have_no_fairness(idle: Outcome) -> None:
    assert fairness.fairness_table({"idle": idle}) is None


def test_starvation_marks_waits_that_grew_much(runs: dict[str, Outcome]) -> None:
    table = fairness.starvation_table(runs)
    rows = {line.label: line.cells for line in table.lines}
    # Large gangs wait 40 / 10 times as long under the third policy; jobs, then three columns a run.
    gangs = rows["33\u201364"]
    assert len(gangs) == 1 + 3 * len(runs)
    assert not gangs[1].marked
    assert gangs[8].marked
    assert not rows["1"][8].marked
    assert "were overtaken" in gangs[3].title


def test_the_longest_wait_so_far_in_each_bin() -> None:
    # One GPU: a 0-100; b, submitted at 10, 100-150; c, submitted at 60, 150-200.
    jobs = {"submit_time": [0, 10, 60], "duration": [100, 50, 50], "num_gpus": [1, 1, 1]}
    out = wt.simulate(jobs, "pool:1", "fifo")
    edges, waits = curves.oldest_in_bins(out, 0.0, 200.0)
    assert len(edges) == len(waits) == curves.MAX_BINS  # of one second
    for second in range(200):
        # At a bin's right end, or within it where the wait ends there.
        oldest = [(10, 100), (60, 150)]
        so_far = [min(second + 1, end) - since for since, end in oldest if since < second + 1]
        here = [w for w, (_, end) in zip(so_far, oldest, strict=False) if second < end]
        assert waits[second] == pytest.approx(max(here, default=0)), second
    assert curves.oldest_in_bins(out, 5.0, 5.0)[0].tolist() == []


def test_the_longest_wait_is_0_where_nobody_waits(single: Outcome) -> None:
    _, waits = curves.oldest_in_bins(single, 0.0, 200.0)
    assert not waits.any()


def test_types_have_a_panel_each_and_keep_the_area(mixed: dict[str, Outcome]) -> None:
    rows, unit = curves.by_type(mixed, 6)
    assert unit in ("minutes", "hours")
    assert {row["type"] for row in rows} == {"A (8 GPUs)", "B (4 GPUs)"}
    start, stop = curves.span(list(mixed.values()))
    for name, outcome in mixed.items():
        held = sum(
            size * np.mean([r["value"] for r in rows if (r["type"], r["policy"]) == (kind, name)])
            for kind, size in (("A (8 GPUs)", 8), ("B (4 GPUs)", 4))
        )
        assert held * (stop - start) == pytest.approx(outcome.metrics()["gpu_time"], rel=1e-6)
    assert len({row["type"] for row in curves.by_type(mixed, 1)[0]}) == 1
    spec = charts.by_type(mixed).to_dict()
    assert spec["facet"]["header"]["title"] == "GPUs of each type in use, mean of each time bin"


def test_one_type_or_an_unknown_one_is_not_drawn(runs: dict[str, Outcome]) -> None:
    assert charts.by_type(runs) is None
    assert charts.by_type(flights(placement="pool")) is None


@pytest.mark.slow
def test_the_page_draws_types_and_fragments_only_where_there_are_some(
    mixed: dict[str, Outcome], runs: dict[str, Outcome]
) -> None:
    assert {"types", "fragments"} <= set(page.figures(mixed))
    assert not {"types", "fragments"} & set(page.figures(runs))
    html = comparison_page(mixed, command="x", title="t")
    for expected in ("GPUs in use by type", "Fragments over time", "Is it fair", "overtaken by"):
        assert expected in html
    # All GPU time of no work at all: nothing to expect, nothing drawn.
    nothing = {"submit_time": [0], "duration": [0], "num_gpus": [1]}
    assert "fragments" not in page.figures({"fifo": wt.simulate(nothing, MIXED, "fifo")})


def test_fragments_are_what_the_outcome_says(mixed: dict[str, Outcome]) -> None:
    rows, _ = curves.over_time({"fifo": mixed["fifo"]}, "fragmentation")
    table = mixed["fifo"].fragmentation(weigh="gpu_time")
    values = table["frag_amount"].to_numpy()
    assert 0 < max(row["value"] for row in rows) <= values.max()
    spec = charts.fragmentation(mixed).to_dict()
    assert spec["facet"]["header"]["title"] == "Fragments, mean of each time bin"
