"""Figures as files: every format whole and valid, data beside them, a page that opens offline."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from windtunnel.errors import SpecError
from windtunnel.report.figures.catalogue import FIGURES, chosen_figures, collect, look_of
from windtunnel.report.figures.sources import WIDTHS, Sources
from windtunnel.report.figures.writing import (
    check_folder,
    checked_formats,
    interactive,
    write_figures,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.report.figures.catalogue import Collected
    from windtunnel.traces.trace import Trace

NAMES = ("cdf_job_duration_util", "treemap_job_dist", "wait_by_request", "cdf_power")


@pytest.fixture(scope="module")
def some(both: Sources) -> list[Collected]:
    return collect(both, chosen_figures(None, NAMES))


@pytest.fixture(scope="module")
def written(both: Sources, some: list[Collected], tmp_path_factory: Any) -> Path:
    out: Path = tmp_path_factory.mktemp("figures") / "new" / "set"
    files = write_figures(
        some,
        look_of(both),
        out,
        formats=("svg", "pdf", "png", "html"),
        title="Figures of hand",
        command="windtunnel figures hand",
    )
    assert files == sorted(path.name for path in out.iterdir())
    return out


def test_every_figure_with_data_has_every_format_and_its_csv(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    endings = ("csv", "svg", "pdf", "png", "html")
    drawn = [name for name in NAMES if name != "cdf_power"]
    assert names == {"index.html", *(f"{n}.{e}" for n in drawn for e in endings)}
    assert [path.name for path in written.parent.iterdir()] == ["set"]


def test_svg_is_valid_and_as_wide_as_a_column(written: Path) -> None:
    for path in written.glob("*.svg"):
        root = ET.fromstring(path.read_text("utf-8"))  # noqa: S314 (our own file)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.attrib["width"] == "3.35in"
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        assert float(root.attrib["height"][:-2]) == pytest.approx(3.35 * height / width, abs=1e-3)


def test_pdf_and_png_are_as_wide_as_a_column(written: Path) -> None:
    for path in written.glob("*.pdf"):
        data = path.read_bytes()
        assert data.startswith(b"%PDF-")
        assert data.rstrip().endswith(b"%%EOF")
        box = re.search(rb"/MediaBox ?\[0 0 ([\d.]+) ", data)
        assert box is not None
        assert float(box[1]) == pytest.approx(3.35 * 72, abs=0.01)
    for path in written.glob("*.png"):
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        assert abs(width - 3.35 * 300) <= 1
        assert height > 100
        # 300 pixels an inch are 11,811 a metre: programs place it at a column's width.
        where = data.index(b"pHYs") + 4
        assert struct.unpack(">IIB", data[where : where + 9]) == (11_811, 11_811, 1)


def test_csv_read_back_is_the_data_that_was_drawn(written: Path, some: list[Collected]) -> None:
    for one in some:
        if one.data.table is not None:
            kinds = {field.name: field.type for field in one.data.table.schema}
            options = pcsv.ConvertOptions(column_types=kinds, strings_can_be_null=True)
            back = pcsv.read_csv(written / f"{one.figure.name}.csv", convert_options=options)
            assert back.equals(one.data.table.combine_chunks()), one.figure.name


def test_the_page_shows_every_figure_with_n_and_needs_nothing_else(written: Path) -> None:
    page = (written / "index.html").read_text("utf-8")
    assert "<script" not in page
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page)
    linked = set(re.findall(r'(?:src|href)="([^"#]+)"', page))
    assert linked == {p.name for p in written.iterdir()} - {"index.html"} - {
        f"{name}.png" for name in NAMES
    } | {f"{name}.png" for name in NAMES if name != "cdf_power"}
    for text in ("Figures of hand", "windtunnel figures hand", "Cannot be drawn", "cdf_power"):
        assert text in page
    assert "<bdi>5</bdi>" in page


def test_a_page_without_svg_files_carries_its_pictures(
    both: Sources, some: list[Collected], tmp_path: Path
) -> None:
    write_figures(some[:1], look_of(both), tmp_path / "o", formats=("pdf",))
    assert 'src="data:image/svg+xml;base64,' in (tmp_path / "o" / "index.html").read_text("utf-8")


def test_the_interactive_page_loads_nothing_and_names_stay_in_their_place(
    make_trace: Callable[..., Trace], columns: Callable[[], dict[str, Any]]
) -> None:
    jobs = columns()
    jobs["workload"] = ["</script><b onmouseover=x>&amp;"] * 8
    sources = Sources.of([make_trace(jobs)])
    figure = FIGURES["box_gpu_num"]
    table = figure.plan.collect(sources).table
    assert table is not None
    page = interactive(figure.plan.draw(table, look_of(sources)).to_dict(), "<i>title</i>")
    assert page.count("<script") == page.count("</script>") == 3
    assert "<b onmouseover" not in page
    assert "\\u003c/script\\u003e" in page or "\\u003c/script>" in page
    assert "<title>&lt;i&gt;title" in page
    own = re.sub(r"<script>const .*?</script>", "", page, count=1, flags=re.DOTALL)
    assert len(own) < len(page) - 500_000  # Vega itself
    assert not re.findall(r"(?:src|href)=|https?://(?!vega\.github\.io/schema)", own)


def test_the_same_data_gives_the_same_svg_and_csv(
    both: Sources, some: list[Collected], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        write_figures(some[:2], look_of(both), tmp_path / name, formats=("svg",))
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_a_folder_that_is_there_keeps_its_other_files(
    both: Sources, some: list[Collected], tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "index.html").write_text("old")
    write_figures(some[:1], look_of(both, "page"), tmp_path, formats=("svg",))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert "old" not in (tmp_path / "index.html").read_text("utf-8")
    assert 'width="7in"' in (tmp_path / "cdf_job_duration_util.svg").read_text("utf-8")
    assert not [p for p in tmp_path.parent.iterdir() if p.name.endswith(".part")]


def test_a_failure_leaves_nothing_behind(
    both: Sources, some: list[Collected], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("windtunnel.report.figures.writing.to_pdf", broken)
    with pytest.raises(OSError, match="No space"):
        write_figures(some, look_of(both), tmp_path / "o", formats=("svg", "pdf"))
    assert list(tmp_path.iterdir()) == []


def test_formats_are_checked_and_ordered() -> None:
    assert checked_formats(["png", "svg", "png"]) == ("svg", "png")
    with pytest.raises(SpecError, match=r"--format: unknown name 'pgn'. Did you mean 'png'"):
        checked_formats(["pgn"])
    with pytest.raises(SpecError, match="expected one or more"):
        checked_formats([])


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SpecError, match="it is a file"):
        check_folder(file)
    with pytest.raises(SpecError, match="is a file"):
        check_folder(file / "below")
    check_folder(tmp_path / "new" / "below")
    assert list(tmp_path.iterdir()) == [file]


def test_names_are_chosen_with_their_other_names_and_the_nearest_is_suggested() -> None:
    chosen = chosen_figures(None, ["pai_gang_size", "box_gpu_num"])
    assert [figure.name for figure in chosen] == ["box_gpu_num", "gang_size"]
    assert len(chosen_figures("acme", [])) == 10
    assert len(chosen_figures("pai", [])) == 18
    assert len(chosen_figures("all", [])) == len(chosen_figures(None, [])) == 28
    for only, words in (
        (["cdf_job_gpu_num"], "Did you mean 'cdf_job_gpunum'"),
        (["recurrence", "recurrence"], "twice"),
        (["recurrence", "pai_recurrence"], "twice"),
    ):
        with pytest.raises(SpecError, match=words):
            chosen_figures(None, only)
    with pytest.raises(SpecError, match="is not in the set 'acme'"):
        chosen_figures("acme", ["recurrence"])
    with pytest.raises(SpecError, match="--set: unknown name 'acne'"):
        chosen_figures("acne", [])


def test_widths_are_those_of_a_column_and_a_page() -> None:
    assert WIDTHS == {"column": 3.35, "page": 7.0}


def test_arrow_types_survive_the_stacking_of_panels(some: list[Collected]) -> None:
    for one in some:
        if one.data.table is not None:
            assert one.data.table.schema.field("n").type == pa.int64()
