"""Every Python block of the README and the docs runs; a page's blocks share a namespace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windtunnel.plugins import registrations_forgotten

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
#: Pages whose blocks take seconds.
SLOW = {
    "docs/bench.md",
    "docs/guides/characterise.md",
    "docs/guides/gavel-figures.md",
    "docs/guides/operators.md",
}
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in NAMES],
)
def test_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / name
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    with registrations_forgotten():  # a page's policies are not for the next one to find
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 - our own documentation


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
