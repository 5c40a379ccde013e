"""The HTML page of a result: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import windtunnel
from windtunnel.report import palette
from windtunnel.report.names import clean
from windtunnel.report.page import Figure
from windtunnel.report.render import to_svg
from windtunnel.report.result import Drawing, Part
from windtunnel.report.templating import render

if TYPE_CHECKING:
    from windtunnel.report.result import Result

_MAX_COMMAND = 2000


def result_page(result: Result, *, command: str) -> str:
    """Return a result as one self-contained HTML text; the same result, the same bytes.

    Args:
        result: what to show.
        command: what makes the page again, printed at its end.
    """
    return render("result.html.j2", page_context(result, command))


def page_context(result: Result, command: str) -> dict[str, Any]:
    """Return what the template of a result's page wants."""
    return {
        "result": _with_chart(result),
        "figure_of": _figure,
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


def _figure(drawing: Drawing) -> Figure:
    from markupsafe import Markup

    chart = drawing.draw()
    if chart is None:
        return Figure(drawing.title, drawing.caption, None)
    picture = to_svg(chart, name=drawing.name, label=drawing.label or drawing.title)
    # The SVG is Vega's own serialisation: it escapes every text it writes.
    svg = Markup(picture)  # noqa: S704
    return Figure(drawing.title, drawing.caption, svg, drawing.name)
