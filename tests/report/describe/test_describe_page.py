"""The page of a trace: complete, self-contained, harmless."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from described_traces import HELD_MINUTES, full, held, trace_of
from page_reader import Reader, read_alone

from windtunnel.report.describe_figures import FIGURES
from windtunnel.report.describe_result import describe_result
from windtunnel.report.description import Description, describe_trace
from windtunnel.report.measured_use import measured_use
from windtunnel.traces.trace import Trace, TraceMetadata

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "windtunnel describe by-hand.csv --html page.html"
HOSTILE = (
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m",
    "\u202eevil\u2066 \u200bname",
    "x" * 100_000,
    "]]><!-- ' \" & </svg>",
    "{{ 7 * 7 }} {% raw %}",
    "a\x00b\r\nc",
    "</style><img src=x onerror=alert(1)>",
)


def page_of(found: Description, command: str = COMMAND) -> str:
    page = describe_result(found).page
    assert page is not None
    return page(command)


def checked(html: str) -> Reader:
    """Return a page read, which stands alone and gives no id twice."""
    reader = read_alone(html)
    ids = [attrs["id"] for _, attrs in reader.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    return reader


@pytest.fixture(scope="module")
def page(full: Description) -> str:
    return page_of(full)


def test_the_page_stands_alone_and_tells_everything(page: str) -> None:
    text = checked(page).text
    for expected in (
        "by-hand",
        "10 jobs of 4 users",
        "made by hand",
        "CC0",
        "64 GPUs: 8 nodes x 8 V100",
        "no start: 2 (17 % of 12 records)",
        "Two clocks disagree.",
        "How large jobs are",
        "Whose jobs they are, and which come back",
        "By virtual cluster",
        "PAI, published",
        "avg_run_time_gpu",
        "Cannot be had, and why",
        "The trace has no tasks table",
        "Figures that cannot be drawn",
        COMMAND,
        "windtunnel 0.",
    ):
        assert expected in text, expected
    assert "nan" not in text.lower().split()


def test_exact_numbers_and_whole_claims_are_in_the_titles(page: str) -> None:
    titles = {attrs.get("title") for _, attrs in checked(page).tags}
    assert {"637,200 GPU s", "240 s", "1,170,000 GPU s"} <= titles
    assert "jobs whose template ran five times or more" in titles


def test_every_figure_is_drawn_or_says_why_not(page: str) -> None:
    text = checked(page).text
    parts = dict(re.findall(r'<figure class="figure-([\w-]+)">(.*?)</figure>', page, re.DOTALL))
    figures = {figure.name.replace("_", "-"): figure for _, figure in FIGURES}
    for name, figure in figures.items():
        if name in parts:
            assert figure.title in parts[name]
            assert "n\u00a0=\u00a0" in parts[name].partition("<figcaption>")[2]
        else:
            assert f"{figure.title} needs {figure.needs}; the trace has no tasks table" in text
    missing = [name for name in figures if name not in parts]
    assert missing == [
        *("request-usage", "overuse", "network-cpu"),
        *("sharing-savings", "colocation", "allocation-by-node"),
    ]


def test_pictures_have_no_paper_of_their_own(page: str) -> None:
    assert page.count("<svg ") > 15
    assert not re.search(r'<rect[^>]*fill="(white|#ffffff|#fff)"', page)


@pytest.mark.slow
def test_a_bare_trace_has_a_page_which_is_the_same_every_time(bare: Description) -> None:
    page = page_of(bare)
    text = checked(page).text
    assert "No record was left out." in text
    assert "Waits by size needs GPUs and waits; no GPU job has a wait" in text
    assert "nan" not in text.lower().split()
    assert page_of(bare) == page


@pytest.mark.sample(1)
@pytest.mark.parametrize("gpus", [0.0, None])
def test_a_single_job_has_a_page(gpus: float | None) -> None:
    trace = trace_of(
        {
            "submit_time": [0.0], "start_time": [0.0], "end_time": [0.0], "duration": [0.0],
            "num_gpus": [gpus], "user": ["u"], "status": ["completed"], "workload": ["w"],
        }
    )  # fmt: skip
    checked(page_of(describe_trace(trace)))


@pytest.mark.slow
def test_hostile_names_stay_text() -> None:
    count = 4 * len(HOSTILE)
    names = [HOSTILE[i % len(HOSTILE)] for i in range(count)]
    jobs = full().jobs
    few = [i % jobs.num_rows for i in range(count)]
    columns = {
        **jobs.take(few).to_pydict(),
        "job_id": [f"{i}{name}" for i, name in enumerate(names)],
        **dict.fromkeys(("user", "vc", "workload", "template", "gpu_type"), names),
    }
    metadata = TraceMetadata(
        name=HOSTILE[0],
        source=HOSTILE[2],
        licence=HOSTILE[4],
        rows_read=count + len(HOSTILE),
        dropped=dict.fromkeys(HOSTILE, 1),
        notes=HOSTILE,
        settings=dict.fromkeys(HOSTILE, HOSTILE[0]),
    )
    trace = Trace(trace_of(columns).jobs, metadata)
    html = page_of(describe_trace(trace), HOSTILE[0])
    reader = checked(html)
    assert "<script>alert(1)</script>" in reader.text
    assert "{{ 7 * 7 }}" in reader.text
    for char in "\x00\x07\x1b\u202e\u2066\u200b":
        assert char not in html
    assert "x" * 500 not in html


def test_telemetry_stands_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windtunnel.report.describe_figures.FIGURES", ())
    path = tmp_path / "minutes.csv"
    path.write_text(HELD_MINUTES)
    trace = held()
    found = describe_trace(trace, telemetry=[measured_use(trace, path)])
    text = checked(page_of(found)).text
    assert "9 samples (philly-gpu-util)" in text
    assert "gpu_util 9 11 % 32.4" in text
    assert "Samples by user ann 4 25.0 25.0 37.0 40.0 bob 2 90.0 90.0 98.0 100" in text
    assert "1 measurement dropped" in text
    assert "telemetry (n = 9)" in text
