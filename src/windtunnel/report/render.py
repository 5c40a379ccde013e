"""Charts as pictures: SVG to stand inside a page, PNG for documents. No browser, no network."""

from __future__ import annotations

import html
import re
from typing import Any

from windtunnel.report import renderer

_ROOT = re.compile(r"<svg\b[^>]*>")
_VIEW_BOX = re.compile(r'viewBox="([-\d. ]+)"')
_LOCAL_ID = re.compile(r'(\bid="|url\(#|href="#)([\w-]+)')
_LONG_NUMBER = re.compile(r"(\d+\.\d{2})\d+")
_PATH = re.compile(r' d="[^"]*"')


def to_svg(chart: Any, *, name: str, label: str) -> str:
    """Return a chart as an SVG element to be put inline into a page.

    The picture scales with its box (no fixed size), is announced to screen readers by ``label``,
    and its local ids begin with ``name``, so that several pictures live in one page.

    Args:
        chart: an Altair chart, or Vega-Lite as plain data.
        name: letters, digits and hyphens; unique in the page.
        label: what the picture shows, in a sentence; escaped here.
    """
    spec = chart if isinstance(chart, dict) else chart.to_dict(validate=False)
    svg = renderer.vegalite_to_svg(spec)
    svg = renamed(svg, name)
    svg = _PATH.sub(lambda match: _LONG_NUMBER.sub(r"\1", match[0]), svg)
    box = _VIEW_BOX.search(svg)
    view = box[1] if box else "0 0 440 300"
    root = f'<svg class="chart" role="img" aria-label="{html.escape(label)}" viewBox="{view}">'
    return _ROOT.sub(lambda _: root, svg, count=1)


def renamed(svg: str, name: str) -> str:
    """Return the picture with its ids numbered from 1 (Vega's count goes on over a process).

    Args:
        svg: the picture.
        name: what its ids begin with.
    """
    numbers: dict[str, int] = {}

    def rename(match: re.Match[str]) -> str:
        number = numbers.setdefault(match[2], len(numbers) + 1)
        return f"{match[1]}{name}-{number}"

    return _LOCAL_ID.sub(rename, svg)


def to_png(chart: Any, *, scale: float = 2.0) -> bytes:
    """Return a chart as the bytes of a PNG file.

    Args:
        chart: an Altair chart.
        scale: pixels per chart pixel.
    """
    spec = {**chart.to_dict(validate=False), "background": "white"}
    spec["config"] = {**spec.get("config", {}), "background": "white"}
    return renderer.vegalite_to_png(spec, scale=scale)
