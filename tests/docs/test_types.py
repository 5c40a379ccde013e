"""The Python blocks of the README and the docs keep to their types: mypy and pyright, strict."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The blocks of each page as a module of their own."""
    made = []
    for page in PAGES:
        if blocks := BLOCK.findall(page.read_text(encoding="utf-8")):
            name = str(page.relative_to(ROOT).with_suffix("")).replace("/", "_").replace("-", "_")
            made.append(tmp_path / f"{name}.py")
            made[-1].write_text("\n\n".join(blocks), encoding="utf-8")
    assert len(made) > 20
    return made


@pytest.mark.slow
def test_blocks_satisfy_mypy(files: list[Path], tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api", reason="mypy is of the group lint")
    config = ROOT / "pyproject.toml"
    if not config.is_file():
        pytest.skip("no pyproject.toml here")
    cache = str(tmp_path / "cache")
    arguments = ["--strict", "--config-file", str(config), "--cache-dir", cache]
    for file in files:
        out, err, status = mypy.run([*arguments, "--follow-imports", "silent", str(file)])
        assert status == 0, out + err


@pytest.mark.slow
def test_blocks_satisfy_pyright(files: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("basedpyright", reason="basedpyright is of the group docs")
    settings = {"typeCheckingMode": "strict", "include": [file.name for file in files]}
    # A page may import what an earlier block of it has imported.
    settings |= {"reportDuplicateImport": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    ran = subprocess.run([*command, "-p", str(tmp_path)], capture_output=True, text=True)  # noqa: S603, PLW1510 - our own command
    assert ran.returncode == 0, ran.stdout
