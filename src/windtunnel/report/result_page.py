"""The HTML page of a result: one file, no script, nothing loaded from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import windtunnel
from windtunnel.report import palette
from windtunnel.report.names import clean
from windtunnel.report.page import Figure
from windtunnel.report.render import to_svg
from windtunnel.report.templating import render

if TYPE_CHECKING:
    from windtunnel.report.result import Drawing, Result

_MAX_COMMAND = 2000


def result_page(result: Result, *, command: str) -> str:
    """Return a result as one self-contained HTML text; the same result, the same bytes.

    Args:
        result: what to show.
        command: what makes the page again, printed at its end.
    """
    context = {
        "result": result,
        "figure_of": _figure,
        "palette": palette.dark_pairs(),
        "command": clean(command, _MAX_COMMAND),
        "version": windtunnel.__version__,
    }
    return render("result.html.j2", context)


def _figure(drawing: Drawing) -> Figure:
    from markupsafe import Markup

    chart = drawing.draw()
    if chart is None:
        return Figure(drawing.title, drawing.caption, None)
    picture = to_svg(chart, name=drawing.name, label=drawing.label or drawing.title)
    # The SVG is Vega's own serialisation: it escapes every text it writes.
    return Figure(drawing.title, drawing.caption, Markup(picture))  # noqa: S704
