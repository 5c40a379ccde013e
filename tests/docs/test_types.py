"""The Python blocks of the README and the docs keep to their types: mypy, strict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_blocks_keep_to_their_types(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api", reason="mypy is of the group lint")
    config = ROOT / "pyproject.toml"
    if not config.is_file():
        pytest.skip("no pyproject.toml here")
    files = []
    for page in PAGES:
        if blocks := BLOCK.findall(page.read_text(encoding="utf-8")):
            name = str(page.relative_to(ROOT).with_suffix("")).replace("/", "_").replace("-", "_")
            files.append(tmp_path / f"{name}.py")
            files[-1].write_text("\n\n".join(blocks), encoding="utf-8")
    assert len(files) > 20
    cache = str(tmp_path / "cache")
    arguments = ["--strict", "--config-file", str(config), "--cache-dir", cache]
    for file in files:  # each page is a module of its own
        out, err, status = mypy.run([*arguments, "--follow-imports", "silent", str(file)])
        assert status == 0, out + err
