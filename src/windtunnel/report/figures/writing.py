"""Figures as files: pictures at their exact width, the data beside them, and a page of all.

A set appears whole or not at all: everything is written into a folder beside the one asked for,
which is then moved into place.
"""

from __future__ import annotations

import base64
import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv as pcsv
from markupsafe import Markup

import windtunnel
from windtunnel import storage
from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.report import renderer
from windtunnel.report.chart.arrange import unchecked
from windtunnel.report.format import count, plural
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.palette import dark_pairs
from windtunnel.report.render import renamed
from windtunnel.report.result import Drawing, Part, Result, table_of
from windtunnel.report.result_page import result_page
from windtunnel.report.templating import embedded, render
from windtunnel.traces.spreadsheet import guarded_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.figures.catalogue import Collected
    from windtunnel.report.figures.sources import Look

#: Formats of pictures.
FORMATS: tuple[str, ...] = ("svg", "pdf", "png", "html")
#: Points of an inch, and pixels of a PNG an inch of paper.
_POINTS = 72.0
_PNG_DPI = 300.0
_ROOT = re.compile(r'(<svg\b[^>]*?) width="([\d.]+)" height="([\d.]+)"')


def checked_formats(words: Sequence[str]) -> tuple[str, ...]:
    """Return formats, each once, in the order of `FORMATS`.

    Raises:
        SpecError: there is none, or one is unknown.
    """
    if not words:
        raise SpecError("--format", f"expected one or more of {', '.join(FORMATS)}.")
    for word in words:
        checked_choice("--format", word, FORMATS)
    return tuple(name for name in FORMATS if name in words)


def check_folder(out: Path) -> None:
    """Check that a folder can be made or written to, before anything is computed.

    Raises:
        SpecError: it is a file, or lies in no folder that can be written to.
    """
    where = f"--out {out}"
    if out.exists() and not out.is_dir():
        raise SpecError(where, "expected a folder; it is a file.")
    nearest = next((p for p in (out, *out.absolute().parents) if p.exists()), Path())
    if not nearest.is_dir():
        raise SpecError(where, f"expected a folder; {quote(str(nearest))} is a file.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise SpecError(where, f"expected a folder that can be written to; {nearest} cannot.")


def write_figures(
    found: Sequence[Collected],
    look: Look,
    out: Path,
    *,
    formats: Sequence[str] = ("svg",),
    title: str = "Figures",
    command: str = "",
    notes: Sequence[str] = (),
    on_done: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Write every figure that has data: pictures, CSV, and ``index.html`` with all of them.

    Args:
        found: what `windtunnel.report.figures.catalogue.collect` returned.
        look: how they look.
        out: the folder; made where it is missing. Files of the same names in it are replaced, each
            whole; others stay.
        formats: of `FORMATS`.
        title: the page's heading.
        command: what makes the set again.
        notes: what a reader of all of it must know.
        on_done: called with a figure's name when its files are there.

    Returns:
        The names of the files, sorted.

    Raises:
        OSError: they cannot be written; nothing is left behind.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with storage.replacing_folder(out) as temporary:
        pictures = {}
        for one in found:
            if one.data.table is not None:
                pictures[one.figure.name] = _write_one(one, look, temporary, formats)
            on_done(one.figure.name)
        page = _page(found, pictures, formats, title=title, command=command, notes=notes)
        (temporary / "index.html").write_text(page, encoding="utf-8", newline="\n")
        return sorted(path.name for path in temporary.iterdir())


def _write_one(one: Collected, look: Look, folder: Path, formats: Sequence[str]) -> str:
    """Write the files of one figure and return its picture as SVG."""
    assert one.data.table is not None  # noqa: S101 (the caller's condition, for the type checker)
    name = one.figure.name
    pcsv.write_csv(guarded_table(one.data.table), folder / f"{name}.csv")
    with unchecked():
        spec = one.figure.plan.draw(one.data.table, look).to_dict(validate=False)
    svg = to_paper_svg(spec, look)
    if "svg" in formats:
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8", newline="\n")
    if "pdf" in formats:
        (folder / f"{name}.pdf").write_bytes(to_pdf(svg, look))
    if "png" in formats:
        (folder / f"{name}.png").write_bytes(to_png(svg, look))
    if "html" in formats:
        (folder / f"{name}.html").write_text(
            interactive(spec, one.figure.title), encoding="utf-8", newline="\n"
        )
    return svg


def to_paper_svg(spec: dict[str, Any], look: Look) -> str:
    """Return a chart as SVG of the look's width on paper; its drawing scales with it.

    Args:
        spec: Vega-Lite.
        look: whose ``paper`` is the width in inch.
    """
    svg = renamed(renderer.vegalite_to_svg(spec), "part")

    def fit(match: re.Match[str]) -> str:
        height = look.paper * float(match[3]) / float(match[2])
        return f'{match[1]} width="{look.paper:g}in" height="{height:.4f}in"'

    return _ROOT.sub(fit, svg, count=1)


def _sized(svg: str, look: Look, per_inch: float) -> str:
    """Return an SVG whose size is written in units of which so many make an inch."""
    width, height = map(float, re.findall(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', svg)[0])
    wide = look.paper * per_inch
    size = f'width="{wide:.4f}" height="{wide * height / width:.4f}"'
    return re.sub(r'width="[\d.]+in" height="[\d.]+in"', size, svg, count=1)


def to_pdf(svg: str, look: Look) -> bytes:
    """Return a picture as PDF of the look's width."""
    return renderer.svg_to_pdf(_sized(svg, look, _POINTS))


def to_png(svg: str, look: Look) -> bytes:
    """Return a picture as PNG of the look's width, which says how many pixels an inch it has."""
    return renderer.svg_to_png(_sized(svg, look, _POINTS), ppi=_PNG_DPI)


#: Draws the one chart of a page.
_START = (
    'const spec = JSON.parse(document.getElementById("spec").textContent);\n'
    'drawChart("#chart", spec, {renderer: "svg", ast: true, mode: "vega-lite", actions: false});'
)


@functools.cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and vegaEmbed as one script that may stand in a page."""
    bundle = renderer.javascript_bundle("window.drawChart = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def interactive(spec: dict[str, Any], title: str) -> str:
    """Return a chart as one page with Vega inside: it can be inspected, and loads nothing.

    Args:
        spec: Vega-Lite.
        title: of the page.
    """
    page_title = clean(title, 160)
    own = spec.get("title")
    if page_title in (own, own.get("text") if isinstance(own, dict) else own):
        spec = {key: value for key, value in spec.items() if key != "title"}  # it is the heading
    context = {
        "title": page_title,
        "spec": embedded(spec),
        "scripts": [Markup(vega_script()), Markup(_START)],  # noqa: S704 - ours
        "palette": dark_pairs(),
        "version": windtunnel.__version__,
    }
    return render("chart.html.j2", context)


def _shown(name: str, svg: str, formats: Sequence[str]) -> str:
    """Return the address of a figure's picture: its file, or all of it where there is none."""
    for ending in ("svg", "png"):
        if ending in formats:
            return f"{name}.{ending}"
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


def _page(
    found: Sequence[Collected],
    pictures: dict[str, str],
    formats: Sequence[str],
    *,
    title: str,
    command: str,
    notes: Sequence[str],
) -> str:
    """Return the page with every figure, its caption, who is in it, and its files."""
    parts = [
        _part(one, _shown(one.figure.name, pictures[one.figure.name], formats), formats)
        for one in found
        if one.figure.name in pictures
    ]
    undrawn = [
        (one.figure.name, one.figure.needs, one.data.reason)
        for one in found
        if one.figure.name not in pictures
    ]
    headline = (
        f"{plural(len(parts), 'figure')}; beside each its data as CSV, exactly what is drawn."
    )
    if undrawn:
        table = table_of(("Figure", "Needs", "Reason"), undrawn, texts=2)
        parts.append(Part("Cannot be drawn", tables=[("", table)]))
    shown = [clean(note, MAX_TEXT) for note in notes]
    result = Result(clean(title, 160), headline, parts=parts, notes=shown)
    return result_page(result, command=command)


def _part(one: Collected, picture: str, formats: Sequence[str]) -> Part:
    """Return a figure with who is in it."""
    figure = one.figure
    link, files = Markup(' <a href="{0}.{1}">{2}</a>'), ("csv", *formats)
    links = Markup().join(link.format(figure.name, end, end.upper()) for end in files)
    image = Markup('<img src="{}" alt="{}. {}"><p class="lead">{}:{}</p>')
    shown = image.format(picture, figure.title, figure.question, figure.name, links)
    columns = ("Panel", "Series", "Note", "n", "Left out")
    rows = [
        (
            f"{part.panel or 'not drawn'}: {part.title}",
            clean(part.trace),
            clean(part.why, MAX_TEXT),
            "not reported" if part.n is None else count(part.n),
            count(part.left_out),
        )
        for part in one.data.parts
    ]
    return Part(
        figure.title,
        figure.question,
        [("", table_of(columns, rows, texts=2))],
        [Drawing(figure.name, "", "", lambda: shown)],
        points=[clean(note, MAX_TEXT) for note in one.data.notes],
        is_wide=True,
    )
