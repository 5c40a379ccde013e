"""A chart as a file: a page, a picture or pixels, by the ending of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel import storage
from windtunnel.report import renderer
from windtunnel.report.render import to_png

if TYPE_CHECKING:
    from pathlib import Path

#: What a chart's file may end in.
ENDINGS: tuple[str, ...] = (".html", ".svg", ".png", ".pdf")


def write_chart(out: Path, chart: Any, title: str = "") -> None:
    """Write a chart as a page that loads nothing, a picture, pixels, or a page of paper.

    Args:
        out: ends in one of `ENDINGS`; appears whole or not at all.
        chart: an Altair chart.
        title: of the page.

    Raises:
        OSError: the file cannot be written; nothing is left behind.
    """
    with storage.replacing(out) as temporary:
        temporary.write_bytes(_bytes(out.suffix.lower(), chart, title))


def _bytes(ending: str, chart: Any, title: str) -> bytes:
    if ending == ".png":
        return to_png(chart)
    spec = chart.to_dict(validate=False)
    if ending == ".html":
        from windtunnel.report.figures.writing import interactive

        return interactive(spec, title).encode()
    if ending == ".pdf":
        return renderer.vegalite_to_pdf(spec)
    return renderer.vegalite_to_svg(spec).encode()
