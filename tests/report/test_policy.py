"""Every page tells the browser that it loads nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

import windtunnel.report
from windtunnel.report import templating
from windtunnel.report.figures.writing import interactive

TEMPLATES = Path(windtunnel.report.__file__).parent / "templates"
BAR = {"mark": "bar", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a"}}}


def policy(page: str) -> dict[str, list[str]]:
    """Return a page's policy: directive -> sources."""
    (text,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', page)
    return {part.split()[0]: part.split()[1:] for part in text.split("; ")}


@pytest.mark.parametrize(
    "template",
    [path for path in sorted(TEMPLATES.glob("*.j2")) if "<!doctype" in path.read_text("utf-8")],
    ids=lambda path: path.name,
)
def test_every_template_of_a_page_has_a_place_for_it(template: Path) -> None:
    text = template.read_text("utf-8")
    assert text.count(templating._HEAD) == 1
    assert "<script" not in text.partition(templating._HEAD)[0]


def test_a_page_with_a_script_allows_that_one_alone() -> None:
    page = interactive(BAR, "</script><script>alert(1)</script>")
    rules = policy(page)
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == ["'none'"]
    runs = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(runs) == 2
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in runs]
    assert rules["script-src"] == [f"'sha256-{digest}'" for digest in digests]
