"""The kernels' build: what is joined, how it is compiled, which build runs, what is delivered."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from windtunnel.errors import WindtunnelError
from windtunnel.kernel.loading import BUILDS, unit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import build_kernel  # noqa: E402 - it lies beside the tests' folder

PACKAGES = sorted(build_kernel.UNITS)
FLOWN = """
import windtunnel as wt
jobs = {"submit_time": [0, 0.1, 0.2], "duration": [4, 0.7, 2], "num_gpus": [1, 2, 1],
        "estimate": [4, 0.7, 2]}
down = {"node_failures": [{"node": 0, "time": 1, "until": 2}], "checkpoint": {"interval": 0.2}}
for cluster in ("pool:2", "1x2"):
    more = {} if cluster == "pool:2" else {"disruptions": down}
    for rule in ("strict", "skip", "easy", "conservative"):
        for policy in ("fifo", "srtf"):
            print(wt.simulate(jobs, cluster, policy, queueing=rule, **more).table.to_pydict())
"""
SERVED = """
import numpy as np
from windtunnel.serving.compiled import kernels
from windtunnel.serving.simulate import DISPATCH

rng = np.random.default_rng(0)
arrival = rng.exponential(0.2, 300).cumsum()
model = rng.integers(0, 2, 300)
tables = [np.array(row) for row in ([0, 2, 3], [0, 1, 1], [0, 2, 4], [0, 2, 4])]
time = rng.random(6) * 0.5
for rule in range(len(DISPATCH)):
    slo, free = np.full(300, 2.0), np.full(4, -np.inf)
    served = kernels().serve_at_once(arrival, model, slo, *tables, time, 0.1, free, rule, 7)
    print(*(array.tobytes().hex() for array in served))
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_a_kernel_is_in_its_unit_after_those_that_it_imports(package: str) -> None:
    folder = build_kernel.UNITS[package]
    listed = build_kernel.modules_in_order(package)
    left_out = {path.stem for path in folder.glob("*.py")} - set(listed)
    assert left_out <= build_kernel.LEFT_OUT
    for at, name in enumerate(listed):
        text = (folder / f"{name}.py").read_text()
        found = re.findall(
            r"^from windtunnel\.(?:kernel|serving\.kernels)\.(\w+)", text, re.MULTILINE
        )
        assert set(found) <= {*listed[:at], *build_kernel.LEFT_OUT}, name


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_of_a_unit_stands_for_two_things(package: str) -> None:
    names: list[str] = []
    for node in ast.parse(build_kernel.joined(package)).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [at.id for at in node.targets if isinstance(at, ast.Name)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_unit_is_one_file_whose_c_functions_raise_only_in_the_checked_build(package: str) -> None:
    fast, checked = (build_kernel.joined(package, checked=checked) for checked in (False, True))
    assert "boundscheck=False" in fast
    assert "boundscheck=True" in checked
    silent = "@cython.exceptval(check=False)\n"
    marked = sum(
        text.count("@compiled\n")
        for text in (path.read_text() for path in build_kernel.UNITS[package].glob("*.py"))
    )
    assert fast.count(silent) - checked.count(silent) == marked > 0
    for text in (fast, checked):
        assert "@compiled" not in text
        assert not re.search(r"^from windtunnel\.(kernel|serving)\b", text, re.MULTILINE)


def test_every_compiler_rounds_each_operation_and_knows_no_single_processor() -> None:
    assert "-ffp-contract=off" in build_kernel.FLAGS["unix"]
    assert "/fp:precise" in build_kernel.FLAGS["msvc"]
    flags = " ".join([*build_kernel.FLAGS["unix"], *build_kernel.FLAGS["msvc"]])
    assert not re.search(r"fast|march|mtune|native|arch:", flags)


def test_a_compiler_that_is_not_there_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler --with flags")
    assert build_kernel.found_compiler() is None


@pytest.mark.skipif(os.name == "nt", reason="setuptools looks for Visual C++ itself")
def test_without_a_compiler_zig_compiles_for_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("LDSHARED", "")
    monkeypatch.setenv("AR", "")
    monkeypatch.setattr(build_kernel, "find_spec", lambda _: object())
    build_kernel.set_compiler()
    assert os.environ["CC"].endswith("-m ziglang cc -mcpu=baseline")
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setattr(build_kernel, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="C compiler"):
        build_kernel.set_compiler()


def test_where_python_has_no_headers_those_of_the_stable_interface_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert build_kernel.header_folders() in ([], ["third_party/python"])
    monkeypatch.setattr(build_kernel.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    monkeypatch.setattr(build_kernel.sys, "platform", "linux")
    monkeypatch.setattr(build_kernel, "IS_STABLE", True)
    (folder,) = build_kernel.header_folders()
    assert "PyModuleDef_Init" in (ROOT / folder / "Python.h").read_text()
    monkeypatch.setattr(build_kernel, "IS_STABLE", False)
    with pytest.raises(SystemExit, match="python3-dev"):
        build_kernel.header_folders()


@pytest.mark.parametrize("program", [SERVED, FLOWN], ids=["served", "flown"])
def test_the_uncompiled_kernel_gives_the_same_bits(program: str) -> None:
    def printed(build: str) -> str:
        env = {**os.environ, "WINDTUNNEL_KERNEL": build}
        run = subprocess.run(  # noqa: S603 - this Python, a fixed program
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=env
        )
        return run.stdout

    assert printed("python") == printed("fast") != ""


def test_an_unknown_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDTUNNEL_KERNEL", "best")
    with pytest.raises(WindtunnelError, match="WINDTUNNEL_KERNEL=best"):
        unit.__wrapped__("windtunnel.serving", "windtunnel.serving.kernels")


def test_a_build_that_is_missing_names_what_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDTUNNEL_KERNEL", "checked")
    with pytest.raises(WindtunnelError, match="make kernel-checked"):
        unit.__wrapped__("windtunnel.report", "windtunnel.report")


def test_the_builds_are_those_that_setup_makes() -> None:
    assert BUILDS == build_kernel.VARIANTS


def test_locks_have_hashes_and_no_urls() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        assert "://" not in text, lock.name
        assert text.count("==") <= text.count("--hash=sha256:"), lock.name


@pytest.mark.slow
def test_the_source_archive_builds_itself_and_holds_what_development_needs(tmp_path: Path) -> None:
    build = f"import build_backend as back; print(back.build_sdist({str(tmp_path)!r}))"
    run = subprocess.run(  # noqa: S603 - this Python, a fixed program
        [sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, text=True
    )
    with tarfile.open(tmp_path / run.stdout.split()[-1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        *("Makefile", "MANIFEST.in", "setup.py", "build_kernel.py", "build_backend.py"),
        *("requirements.lock", "requirements-compiler.lock", "scripts/lock.py", ".ci/run"),
        *("tests/test_build.py", "docs/index.md", "benchmarks/conftest.py", "LICENSE"),
        *("src/windtunnel/kernel/bits.pxd", "src/windtunnel/serving/kernels/greedy.py"),
    } <= names
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc"))]


def test_arrays_of_other_kinds_and_read_only_ones_are_served_alike() -> None:
    from windtunnel import serving

    profile = serving.synthetic_profile()
    models = ["medium"] * 2
    slo = serving.slos(models, profile, 5.0)
    drawn = serving.generate(models, duration=50.0, rate=5.0, cv=4.0, slo=slo)
    groups = serving.as_placement([{"parallel": [1, 1, 8], "models": [0, 1]}])
    other = serving.Workload(
        drawn.models, drawn.arrival.repeat(2)[::2], drawn.model.astype(np.int32), drawn.slo.copy()
    )
    other.slo.flags.writeable = False
    mine, its = (serving.simulate(groups, one, profile) for one in (drawn, other))
    assert np.array_equal(mine.finish, its.finish, equal_nan=True)
