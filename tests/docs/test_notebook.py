"""The notebook among the examples: its cells run, and Jupyter executes it where it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windtunnel

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "first_look.ipynb"
LONG = 400


@pytest.mark.slow
def test_its_cells_show_a_trace_a_comparison_and_three_charts() -> None:
    namespace: dict[str, Any] = {}
    shown = []
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        *before, last = "".join(cell["source"]).rstrip().split("\n")
        exec("\n".join(before), namespace)  # noqa: S102 - our own notebook
        shown.append(eval(last, namespace))  # noqa: S307 - ditto
    trace, runs, *charts, table = shown
    assert "<td>2,000</td>" in trace._repr_html_()
    assert "<td>srtf</td>" in runs._repr_html_()
    assert len(charts) == 3
    for chart in charts:
        assert chart._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert table.fetchall()


@pytest.mark.slow
def test_jupyter_executes_it(tmp_path: Path) -> None:
    for module in ("nbconvert", "ipykernel"):
        pytest.importorskip(module, reason="needs the extra 'docs' (make docs)")
    out = tmp_path / "out.ipynb"
    words = ["--to", "notebook", "--execute", "--output", str(out), str(NOTEBOOK)]
    path = [str(Path(windtunnel.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    found = subprocess.run(  # noqa: S603 - our own interpreter and notebook
        [sys.executable, "-m", "nbconvert", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "JUPYTER_PLATFORM_DIRS": "1"},
    )
    assert found.returncode == 0, found.stderr
    outputs = [
        kind
        for cell in json.loads(out.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert outputs.count("text/html") >= 2
    assert outputs.count("image/svg+xml") == 3
