"""The page: complete, self-contained, harmless, and right about what is better."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from page_reader import Reader, read_alone

from windtunnel.report import comparison_page, sections, write_page
from windtunnel.traces import Trace, TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome

COMMAND = "windtunnel compare made-up --policies fifo,sjf,srtf --out report.html"
_ALLOWED = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "section",
    "h1",
    "h2",
    "h3",
    "p",
    "div",
    "span",
    "strong",
    "small",
    "bdi",
    "dl",
    "dt",
    "dd",
    "ul",
    "li",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "pre",
    "code",
    "svg",
    "g",
    "path",
    "line",
    "text",
    "rect",
    "defs",
    "clippath",
    "tspan",
}


def _assert_self_contained(html: str) -> Reader:
    reader = read_alone(html)
    assert {tag for tag, _ in reader.tags} <= _ALLOWED
    return reader


@pytest.fixture(scope="module")
def trace(runs: dict[str, Outcome]) -> Trace:
    metadata = TraceMetadata(
        name="made-up",
        source="https://example.org/trace.csv",
        licence="CC0",
        epoch="2024-01-01T00:00:00+00:00",
        zone="Asia/Shanghai",
        rows_read=425,
        dropped={"no end time recorded": 25},
        notes=("Everything is made up.",),
        settings={"seed": 7},
    )
    return Trace(runs["fifo"].jobs, metadata)


@pytest.fixture(scope="module")
def page(runs: dict[str, Outcome], trace: Trace) -> str:
    return comparison_page(runs, trace=trace, command=COMMAND, title="Three policies")


def test_page_is_one_file_that_loads_nothing(page: str) -> None:
    reader = _assert_self_contained(page)
    assert page.startswith("<!doctype html>")
    assert sum(tag == "svg" for tag, _ in reader.tags) == 7
    assert len(page) < 1_000_000


def test_page_tells_everything_it_must(page: str) -> None:
    text = Reader(page).text
    for expected in (
        "Three policies",
        "srtf cuts the mean completion time by",
        "made-up",
        "400 jobs",
        "n = 400",
        "https://example.org/trace.csv",
        "CC0",
        "no end time recorded",
        "5.9 % of 425 records",
        "Everything is made up.",
        "Made with seed",
        "512 GPUs: 64 nodes x 8 A100",
        "Completion time, P99",
        "Utilisation",
        "33\u201364",
        "5 others",
        "queueing",
        "strict",
        "Waits are made up.",
        COMMAND,
        "windtunnel 0.",
    ):
        assert expected in text, expected


def test_numbers_have_exact_values_as_titles(page: str, runs: dict[str, Outcome]) -> None:
    titles = {attrs.get("title") for tag, attrs in Reader(page).tags if tag == "td"}
    mean = runs["fifo"].metrics()["avg_jct"]
    assert f"{mean:,.3f}".rstrip("0").rstrip(".") + " s" in titles


@pytest.mark.slow
def test_better_and_worse_are_marked_by_word_and_class(runs: dict[str, Outcome]) -> None:
    table = sections.metrics_table(runs)
    lines = {line.label: line for line in table.lines}
    mean = lines["Completion time, mean"].cells
    assert mean[0].note == ""
    assert (mean[1].verdict, mean[1].note.split()[-1]) == ("better", "better")
    longest = lines["Wait, longest"].cells[2]
    assert (longest.verdict, longest.note[0]) == ("worse", "\u25b2")
    page = comparison_page(runs, trace=None, command=COMMAND, title="x")
    assert re.search(r'<small class="worse">\u25b2 [^<]* worse</small>', page)
    assert re.search(r'<small class="better">\u25bc [^<]* better</small>', page)


def test_starving_gangs_are_highlighted(runs: dict[str, Outcome], page: str) -> None:
    table = sections.sizes_table(runs)
    marked = {line.label: [cell.marked for cell in line.cells] for line in table.lines}
    assert marked["1"] == [False] * 8
    assert marked["33\u201364"][-2:] == [True, True]
    assert marked["33\u201364"][:6] == [False] * 6
    assert 'class="marked' in page
    assert "4.0\u00d7 as long" in page


def test_virtual_clusters_beyond_the_top_are_one_row(runs: dict[str, Outcome]) -> None:
    table = sections.vcs_table(runs)
    assert table is not None
    assert len(table.lines) == sections.TOP_VCS + 1
    assert table.lines[-1].label == "5 others"
    jobs = [int(line.cells[0].text) for line in table.lines]
    assert sum(jobs) == 400
    hours = [float(line.cells[1].text.replace(",", "")) for line in table.lines[:-1]]
    assert hours == sorted(hours, reverse=True)


def test_rest_of_the_virtual_clusters_is_exact(fly: Callable[..., Outcome]) -> None:
    run = fly([0] * 4, [0, 10, 20, 40], [100, 90, 1, 1], [1] * 4, vc=["a", "b", "c", "d"])
    table = sections.vcs_table({"fifo": run}, top=2)
    assert table is not None
    assert [cell.text for cell in table.lines[-1].cells] == ["2", "0.00", "30 s", "38 s"]


def test_jobs_without_virtual_clusters_say_so(single: Outcome) -> None:
    assert sections.vcs_table({"fifo": single}) is None
    html = comparison_page({"fifo": single}, trace=None, command=COMMAND, title="x")
    assert "The jobs name no virtual cluster." in html


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["idle", "empty", "single"])
def test_degenerate_runs_make_a_page(kind: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(kind)
    html = comparison_page({"fifo": run, "sjf": run}, trace=None, command=COMMAND, title="x")
    reader = _assert_self_contained(html)
    assert "nan" not in reader.text.lower().split()
    assert ("Nothing to draw" in html) == (kind != "single")


@pytest.mark.slow
def test_runs_of_different_jobs_make_a_page(runs: dict[str, Outcome], single: Outcome) -> None:
    mixed = {"fifo": single, "other": runs["fifo"]}
    html = comparison_page(mixed, trace=None, command=COMMAND, title="x")
    assert "different sizes" in _assert_self_contained(html).text


@pytest.mark.slow
def test_many_runs_make_a_page(make_run: Callable[..., Outcome]) -> None:
    many = {f"policy {i}": make_run(30, scale=100.0 * (i + 1)) for i in range(10)}
    _assert_self_contained(comparison_page(many, trace=None, command=COMMAND, title="x"))


def test_no_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        comparison_page({}, trace=None, command=COMMAND, title="x")


def test_hostile_names_stay_text(hostile: dict[str, Outcome], hostile_names: Any) -> None:
    nasty = hostile_names[0]
    metadata = TraceMetadata(
        name=nasty,
        source=hostile_names[2],
        licence=hostile_names[4],
        epoch=nasty,
        zone=nasty,
        rows_read=9,
        dropped=dict.fromkeys(hostile_names, 1),
        notes=hostile_names,
        settings=dict.fromkeys(hostile_names, nasty),
    )
    trace = Trace(next(iter(hostile.values())).jobs, metadata)
    html = comparison_page(hostile, trace=trace, command=nasty, title=nasty)
    reader = _assert_self_contained(html)
    assert "<script>alert(1)</script>" in reader.text
    assert "49" not in re.findall(r"<bdi>(\d+)", html)
    for char in "\x00\x07\x1b\u202e\u2066\u200b":
        assert char not in html
    assert "x" * 500 not in html


def test_write_page_is_whole_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    assert write_page(target, "first \u00e9") == target
    assert target.read_bytes() == "first \u00e9".encode()
    write_page(str(target), "second")
    assert target.read_text(encoding="utf-8") == "second"

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_page(target, "third")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert target.read_text(encoding="utf-8") == "second"


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        write_page(tmp_path / "nowhere" / "report.html", "x")


@pytest.mark.slow
def test_the_page_is_the_same_every_time(runs: dict[str, Outcome], trace: Trace, page: str) -> None:
    assert comparison_page(runs, trace=trace, command=COMMAND, title="Three policies") == page
