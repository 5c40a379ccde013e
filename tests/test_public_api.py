"""The public surface: names, what importing costs, and that every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import windtunnel as wt
from windtunnel.lazy_names import homes_of

#: Seconds in which anything here is over, or hangs.
LONG = 240
SOURCE = Path(wt.__file__).parent
MODULES = sorted(
    ".".join(("windtunnel", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)


def _code(module: str) -> str:
    path = SOURCE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.read_text("utf-8")


def _imports(module: str) -> set[str]:
    """Return the modules of ours that one imports, at its top, when it runs, or for types."""
    code = _code(module)
    found = set(re.findall(r"^ *import (windtunnel[\w.]*)", code, re.MULTILINE))
    for home, names in re.findall(
        r"^ *from (windtunnel\S*) import (\([^)]*|.*)", code, re.MULTILINE
    ):
        inside = {f"{home}.{name}" for name in re.findall(r"\w+", names)}
        found |= inside & _KNOWN or {home}
    return found & _KNOWN - {module}


_KNOWN = set(MODULES)


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {module: _imports(module) for module in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


#: What the design names.
DESIGNED = {
    *("Comparison", "Kueue", "Outcome", "Scheduler", "Site", "Study", "compare", "gavel", "learn"),
    *("open_trace", "placement", "plot", "policy", "predictor", "reader", "serving", "simulate"),
    *("testing", "throughput_model"),
}


def test_dir_has_the_public_names_and_no_others() -> None:
    code = "import windtunnel as wt; wt.simulate, wt.Outcome, wt.testing; print(*dir(wt))"
    found = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG
    ).stdout.split()
    assert found == sorted(found)
    assert set(found) >= DESIGNED
    assert [name for name in found if name.startswith("_")] == ["__version__"]
    assert found == dir(wt) == wt.__all__


@pytest.mark.parametrize("name", dir(wt))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(wt, name)
    assert value.__doc__
    home = homes_of(wt.__file__).get(name, "builtins")
    assert (f"{home}.{name}" if home == "windtunnel" else home) in {
        getattr(value, "__module__", "builtins"),
        getattr(value, "__name__", ""),
    }


@pytest.mark.parametrize("module", [wt.gavel, wt.plot, wt.serving, wt.testing])
def test_its_modules_list_their_public_names_and_no_others(module: Any) -> None:
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert not [name for name in dir(module) if name.startswith("_")]


def test_a_room_has_the_names_that_its_list_says() -> None:
    import windtunnel.throughput

    assert dir(windtunnel.throughput) == sorted(homes_of(windtunnel.throughput.__file__))
    assert all(hasattr(windtunnel.throughput, name) for name in dir(windtunnel.throughput))


def test_another_name_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="module 'windtunnel' has no attribute 'simulat'"):
        _ = wt.simulat


def test_importing_is_cheap() -> None:
    heavy = ("pyarrow", "altair", "ibis", "duckdb", "numpy", "pandas", "msgspec")
    code = f"import sys, windtunnel; print([m for m in {heavy!r} if m in sys.modules])"
    found = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG
    )
    assert found.stdout.strip() == "[]"


def test_a_run_on_the_reference_engine_needs_no_kernel_and_no_charts() -> None:
    code = (
        "import sys, windtunnel as wt\n"
        "jobs = {'submit_time': [0], 'duration': [1], 'num_gpus': [1]}\n"
        "wt.simulate(jobs, 'pool:1', engine='reference').metrics()\n"
        "heavy = ('windtunnel.kernel._kernel', 'altair', 'ibis', 'duckdb')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG
    )
    assert found.stdout.strip() == "[]"


def examples(name: str) -> list[doctest.DocTest]:
    if name == "windtunnel.lab.app":  # a notebook
        pytest.importorskip("marimo", reason="needs the extra 'lab' (make test-browser)")
    found = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in found if test.examples]


@pytest.mark.usefixtures("plugins_forgotten")
@pytest.mark.parametrize("name", [name for name in MODULES if ">>> " in _code(name)])
def test_examples_in_docstrings(name: str) -> None:
    for test in examples(name):
        output: list[str] = []
        runner = doctest.DocTestRunner()
        failed = runner.run(test, out=output.append).failed
        assert failed == 0, "".join(output)


def test_there_are_examples_and_modules() -> None:
    assert "windtunnel.kernel.loading" in MODULES
    names = {test.name for name in ("windtunnel", "windtunnel.schema") for test in examples(name)}
    assert {"windtunnel", "windtunnel.schema.as_jobs"} <= names


@pytest.mark.slow
def test_the_types_of_the_public_surface(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api", reason="mypy is of the group lint")
    code = Path(__file__).parent / "typing_api.py"
    config = SOURCE.parent.parent / "pyproject.toml"
    arguments = ["--strict", "--cache-dir", str(tmp_path), "--follow-imports", "silent"]
    if config.is_file():
        arguments += ["--config-file", str(config)]
    out, err, status = mypy.run([*arguments, str(code)])
    assert status == 0, out + err
