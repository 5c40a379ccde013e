"""Who ran where: exact means, and what is drawn for which run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.report.occupancy import (
    alive,
    gantt_rows,
    heat_rows,
    held_shares,
    occupancy,
    occupancy_page,
)
from windtunnel.report.render import to_svg

JOBS = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0, 0, 10],
    "duration": [20, 10, 10],
    "num_gpus": [2, 1, 1],
}


def test_shares_of_a_hand_worked_run() -> None:
    out = wt.simulate(JOBS, "2x2")
    nodes, shares = held_shares(out, 0.0, 20.0, bins=4, groups=9)
    assert nodes.tolist() == [0, 1, 2]
    assert shares.tolist() == [[1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]]
    _, whole = held_shares(out, -20.0, 60.0, bins=1, groups=1)
    assert whole.tolist() == [[pytest.approx(60 / (4 * 80))]]


def test_shares_add_up_to_the_gpu_time_of_the_run() -> None:
    rng = np.random.default_rng(5)
    n = 500
    jobs = {
        "submit_time": np.sort(rng.uniform(0, 5000, n)),
        "duration": rng.uniform(0, 400, n),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], n),
    }
    cluster = wt.ClusterSpec((wt.NodeType(7, 8, "A"), wt.NodeType(2, 0), wt.NodeType(6, 4, "B")))
    out = wt.simulate(jobs, cluster, policy="srtf")
    first, last = 0.0, out.metrics()["makespan"]
    nodes, shares = held_shares(out, first, last, bins=37, groups=5)
    sizes = np.append(0, np.cumsum([8] * 7 + [0] * 2 + [4] * 6))
    gpus = np.diff(sizes[nodes])
    held = float((shares * gpus[:, None]).sum() * (last - first) / 37)
    assert held == pytest.approx(out.metrics()["gpu_time"], rel=1e-9)


def test_a_small_run_is_a_gantt_chart_of_every_stay_and_gpu() -> None:
    out = wt.simulate(JOBS, "2x2")
    rows = gantt_rows(out, 0.0, 20.0)
    assert [(r["thread"], r["job"], r["from"], r["until"]) for r in rows] == [
        ("node 0, GPU 0", "a", 0, 20),
        ("node 0, GPU 1", "a", 0, 20),
        ("node 1, GPU 0", "b", 0, 10),
        ("node 1, GPU 0", "c", 10, 20),
    ]
    drawn = occupancy(out)
    assert drawn is not None
    assert drawn.title == "Who ran where"
    assert drawn.caption == (
        "One bar a stay and GPU: n = 4 bars of 3 jobs on 3 threads; time in seconds."
    )
    assert "GPU 1" in to_svg(drawn.chart, name="x", label="y")


def test_a_large_run_is_a_heat_map_of_few_cells() -> None:
    n = 3000
    jobs = {"submit_time": range(n), "duration": [30] * n, "num_gpus": [1] * n}
    out = wt.simulate(jobs, "100x8")
    assert gantt_rows(out, 0.0, 3029.0) == []
    drawn = occupancy(out)
    assert drawn is not None
    assert drawn.chart.to_dict()["mark"]["type"] == "rect"  # checked against Vega-Lite's schema
    assert "n = 3,000 stays on 100 nodes; time in minutes" in drawn.caption
    rows = heat_rows(out, 0.0, 3029.0)
    assert 0 < len(rows) < 5000
    assert max(row["share"] for row in rows) > 0.9


def test_nothing_is_drawn_without_jobs_or_nodes() -> None:
    assert (
        occupancy(wt.simulate({"submit_time": [], "duration": [], "num_gpus": []}, "2x2")) is None
    )
    n = 1200
    jobs = {"submit_time": range(n), "duration": [30] * n, "num_gpus": [1] * n}
    out = wt.simulate(jobs, "pool:64")
    assert occupancy(out) is None
    page, notes = occupancy_page(out, "A title")
    assert "Nothing to draw" in page
    assert "<script" not in page
    assert len(notes) == 1


def test_names_cannot_leave_the_live_chart() -> None:
    jobs = {
        **JOBS,
        "job_id": ["</script><script>alert(1)</script>", "b", "c"],
        "vc": ["&<", "y", "z"],
    }
    drawn = occupancy(wt.simulate(jobs, "2x2"))
    assert drawn is not None
    markup = str(alive(drawn.chart, "one"))
    assert markup.count("<script") == 1
    text = re.search(r"data-chart=\"one\">(.*)</script>", markup, re.DOTALL)
    assert text is not None
    spec = json.loads(text[1])
    assert "<script>alert(1)" in json.dumps(spec)
    page, _ = occupancy_page(wt.simulate(jobs, "2x2"), "<script>title")
    assert "<script>title" not in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
