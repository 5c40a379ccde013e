"""Charts of energy: what is drawn adds up to the account's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.energy import Account, PowerModel, Series, account
from windtunnel.report import energy_section, power_charts, power_curves
from windtunnel.report.render import to_png

HOUR = 3600.0
MODEL = PowerModel.from_mapping(
    {
        "gpus": {"A": {"idle_w": 50, "active_w": 250}, "B": {"idle_w": 10, "active_w": 70}},
        "host_w": 100,
        "pue": 1.5,
    }
)
CLUSTER = wt.ClusterSpec((wt.NodeType(2, 4, "A"), wt.NodeType(1, 4, "B")))
JOBS = {
    "submit_time": [600.0 * i for i in range(24)],
    "duration": [HOUR * (1 + i % 5) for i in range(24)],
    "num_gpus": [1 + i % 4 for i in range(24)],
    "user": [f"u{i % 11:02}" for i in range(24)],
}


@pytest.fixture(scope="module")
def books() -> dict[str, Account]:
    carbon = Series(np.arange(24) * HOUR, 100.0 + 10 * np.arange(24))
    options: dict[str, Any] = {"power": MODEL, "power_cap": {"rows": [[0, 2800], [9000, 3500]]}}
    return {
        policy: account(wt.simulate(JOBS, CLUSTER, policy, **options), MODEL, carbon=carbon)
        for policy in ("fifo", "sjf")
    }


def test_the_stack_is_the_energy(books: dict[str, Account]) -> None:
    rows, unit, watt = power_curves.power_rows(books)
    assert (unit, watt) == ("hours", "kW")
    start, stop, _, second = power_curves.times_of(books)
    width = (stop - start) / power_curves.MAX_BINS
    for name, book in books.items():
        whole = sum(row["high"] - row["low"] for row in rows if row["policy"] == name)
        assert whole * 1000 * width == pytest.approx(book.summary()["energy_j"], rel=1e-5)
        cap = book.cap
        assert cap is not None
        tops = [
            row["high"] * 1000 - float(cap.at(start + row["time"] * second))
            for row in rows
            if row["policy"] == name and row["source"] == "building"
        ]
        assert max(tops) <= 700  # a bin may hold the instant at which the cap rises
    steps = power_curves.step_rows(Series(np.array([0.0, 9000]), np.array([2.0, 3.0])), books)
    assert [row["value"] for row in steps][:2] == [2.0, 3.0]
    assert steps[1]["time"] == 2.5


def test_groups_are_the_energy_of_jobs(books: dict[str, Account]) -> None:
    for rows, unit in (power_curves.group_rows(books, "user"), power_curves.type_rows(books)):
        joule = {"kWh": 3.6e6, "MWh": 3.6e9}[unit]
        for name, book in books.items():
            whole = sum(row["energy"] for row in rows if row["policy"] == name)
            assert whole * joule == pytest.approx(book.summary()["jobs_j"])
    users = power_curves.group_rows(books, "user")[0]
    assert len({row["group"] for row in users}) == power_curves.TOP + 1
    assert power_curves.group_rows(books, "vc")[0] == []


def test_charts_draw(books: dict[str, Account]) -> None:
    chart = power_charts.power_over_time(books)
    assert chart is not None
    spec = chart.to_dict()
    titles = [panel["title"]["text"] for panel in spec["concat"]]
    assert titles[0] == "fifo (n = 24): kW, mean of each time bin; line: cap"
    assert titles[-1] == "carbon intensity: gCO2eq per kWh"
    assert to_png(chart)[:4] == b"\x89PNG"
    for column in ("user", "gpu_type"):
        bars = power_charts.energy_by(books, column)
        assert bars is not None
        assert bars.to_dict()["encoding"]["x"]["title"].startswith("Energy of jobs")
    assert power_charts.energy_by(books, "vc") is None


def test_measures_of_runs(books: dict[str, Account]) -> None:
    runs = [energy_section.numbers_of(book) for book in books.values()]
    keys = [measure.key for measure in energy_section.shown(runs)]
    assert keys[:3] == ["energy_j", "jobs_j", "idle_j"]
    assert "capped_time" in keys
    assert "cost" not in keys
    assert {measure.key for measure in energy_section.MEASURES} <= set(runs[0])
