"""The lab in Chromium: it loads, follows its controls, keeps what it shows, and stays at home."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: For a page whose process also loads marimo, on a machine that may be busy, ms.
_PATIENCE = 60_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 2,000 jobs whose users and clusters have hostile names."""
    rng = np.random.default_rng(4)
    n = 2000
    hostile = "<script>window.hostile = 1</script>"
    table = pa.table(
        {
            "job_id": [f"{hostile}{i}" for i in range(n)],
            "submit_time": np.sort(rng.uniform(0, 50_000, n)),
            "duration": np.ceil(rng.lognormal(5, 1.5, n)),
            "num_gpus": rng.choice([1, 2, 4, 8], n),
            "user": [hostile] * n,
            "vc": [f"<b>{i % 5}</b>" for i in range(n)],
        }
    )
    path = tmp_path_factory.mktemp("lab") / "<i>trace.csv"
    pcsv.write_csv(table, path)
    return path


@pytest.fixture(scope="module")
def lab(trace: Path, serve: Callable[..., Any]) -> Iterator[Any]:
    """A lab with that trace, served by a process of its own."""
    with serve(trace) as lab:
        lab.enter()
        yield lab


def headline(page: Any) -> str:
    return str(page.locator(".lab-headline").inner_text())


def opened(watched: Any, lab: Any) -> Any:
    lab.lend_cookie(watched.page.context)
    watched.page.goto(lab.page)
    watched.page.locator(".lab-headline").wait_for(timeout=_PATIENCE)
    return watched.page


def choose(page: Any, label: str, value: str) -> None:
    """Choose an item of a drop-down list and wait until the page tells something else."""
    before = page.locator(".lab").inner_html()
    page.get_by_label(label, exact=True).select_option(value)
    changed(page, before)


def set_nodes(page: Any, number: str) -> None:
    box = page.locator("marimo-number", has_text="Nodes").locator("input")
    box.fill(number)
    box.press("Enter")


def changed(page: Any, before: str) -> None:
    page.wait_for_function(
        "old => { const now = document.querySelector('.lab, .lab-failed');"
        " return now && now.innerHTML !== old }",
        arg=before,
        timeout=_PATIENCE,
    )


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_loads_and_follows_its_controls(
    watch: Callable[..., Any], lab: Any, trace: Path, width: int, scheme: str
) -> None:
    watched = watch(width, scheme)
    page = opened(watched, lab)
    assert headline(page).startswith("srtf ")
    assert page.locator(".lab svg.chart").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    curve = page.locator(".lab svg.chart").first.inner_html()
    choose(page, "against", "las")
    assert headline(page).startswith("las ")
    assert page.locator(".lab svg.chart").first.inner_html() != curve

    before = page.locator(".lab").inner_html()
    set_nodes(page, "3")
    changed(page, before)
    assert "24 GPUs: 3 nodes x 8 GPUs" in page.locator(".lab-where").inner_text()
    jobs = wt.open_trace(trace).jobs
    used = wt.simulate(jobs, "3x8", "fifo").metrics()["utilization"]
    cells = page.locator(".lab tr", has_text="Utilisation").locator("td").all_inner_texts()
    assert cells[0].strip() == f"{used:.0%}".replace("%", " %")
    watched.assert_quiet()


def test_what_cannot_be_flown_says_why(watch: Callable[..., Any], lab: Any) -> None:
    watched = watch()
    page = opened(watched, lab)
    choose(page, "Queueing", "easy")
    assert "requested wall time" in page.locator(".lab-failed").inner_text()
    before = page.locator(".lab-failed").inner_html()
    page.get_by_label("Queueing", exact=True).select_option("skip")
    changed(page, before)
    assert headline(page)
    watched.assert_quiet()


def test_it_keeps_what_it_shows(
    watch: Callable[..., Any], lab: Any, trace: Path, tmp_path: Path
) -> None:
    watched = watch()
    page = opened(watched, lab)
    choose(page, "Placement", "spread")
    for label, name in (("Keep as STUDY.toml", "STUDY.toml"), ("Keep as a page", "lab.html")):
        with page.expect_download(timeout=_PATIENCE) as waiting:
            page.get_by_text(label).click()
        assert waiting.value.suggested_filename == name
        waiting.value.save_as(tmp_path / name)
    study = tomllib.loads((tmp_path / "STUDY.toml").read_text("utf-8"))
    assert study["traces"] == [{"trace": str(trace.resolve())}]
    assert study["placements"] == ["spread"]
    assert study["policies"] == ["fifo", "srtf"]
    watched.assert_quiet()
    kept = watch()
    kept.page.goto((tmp_path / "lab.html").as_uri())
    assert kept.page.locator("figure svg").count() >= 7
    kept.assert_quiet()


def test_a_hundred_thousand_jobs_follow_a_control(
    watch: Callable[..., Any], serve: Callable[..., Any]
) -> None:
    with serve("synthetic:seren:jobs=100000") as lab:
        watched = watch()
        watched.page.goto(lab.address)  # as printed
        page = opened(watched, lab)
        before = page.locator(".lab").inner_html()
        set_nodes(page, "283")
        changed(page, before)
        assert "2,264 GPUs: 283 nodes x 8 A100" in page.locator(".lab-where").inner_text()
        watched.assert_quiet()
