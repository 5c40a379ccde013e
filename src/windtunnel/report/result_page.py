"""The HTML page of a result: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import windtunnel
from windtunnel import storage
from windtunnel.report import palette
from windtunnel.report.chart.arrange import unchecked
from windtunnel.report.names import clean
from windtunnel.report.render import to_svg
from windtunnel.report.result import Drawing, Part
from windtunnel.report.templating import render

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from windtunnel.report.result import Result

_MAX_COMMAND = 2000


@dataclass(frozen=True)
class Figure:
    """A picture with its heading and caption; ``svg`` is None where there is nothing to draw."""

    title: str
    caption: str
    svg: Markup | None
    name: str = ""


def result_page(result: Result, *, command: str, scripts: Sequence[Markup] = ()) -> str:
    """Return a result as one self-contained HTML text; the same result, the same bytes.

    Args:
        result: what to show.
        command: what makes the page again, printed at its end.
        scripts: what its live pictures need; without one nothing runs.
    """
    return render("result.html.j2", page_context(result, command) | {"scripts": scripts})


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """Write a page, whole or not at all.

    Args:
        path: the file to write; its folder must exist.
        html: the page's text, written as UTF-8.

    Returns:
        The path.

    Raises:
        OSError: the folder does not exist or cannot be written to; nothing is left behind.
    """
    with storage.replacing(path) as temporary:
        temporary.write_text(html, encoding="utf-8", newline="\n")
    return Path(path)


def page_context(result: Result, command: str) -> dict[str, Any]:
    """Return what the template of a result's page wants."""
    return {
        "result": result,
        "parts": _shown(_with_chart(result)),
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
        "scripts": [],
    }


def _with_chart(result: Result) -> Result:
    """Return the result with its chart before all else, where no part has a picture."""
    if result.chart is None or any(part.drawings for part in result.parts):
        return result
    drawing = Drawing("chart", "", "", result.chart, label=result.title)
    shown = Part("Chart", drawings=[drawing], is_wide=True, on_paper=True)
    return replace(result, parts=[shown, *result.parts])


def _shown(result: Result) -> list[tuple[Part, list[Figure]]]:
    """Return the parts that have anything to show, with their pictures."""
    shown = []
    for part in result.parts:
        figures = [
            figure
            for drawing in part.drawings
            if (figure := _figure(drawing)).svg is not None or not drawing.optional
        ]
        if figures or part.lead or part.facts or part.terms or part.points or part.tables:
            shown.append((part, figures))
    return shown


def _figure(drawing: Drawing) -> Figure:
    with unchecked():
        chart = drawing.draw()
    if chart is None:
        return Figure(drawing.title, drawing.caption, None)
    if isinstance(chart, Markup):
        return Figure(drawing.title, drawing.caption, chart, drawing.name)
    picture = to_svg(chart, name=drawing.name, label=drawing.label or drawing.title)
    # The SVG is Vega's own serialisation: it escapes every text it writes.
    svg = Markup(picture)  # noqa: S704
    return Figure(drawing.title, drawing.caption, svg, drawing.name)
