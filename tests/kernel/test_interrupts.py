"""Ctrl-C while the loop runs: a flight ends with KeyboardInterrupt, its memory in order."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel import kernel, serving

pytestmark = pytest.mark.usefixtures("plugins_forgotten")

#: Flies 20,000 jobs that come at once, interrupted after each of some delays, CPU seconds, which a
#: busy machine does not change; prints what came.
FLIGHTS = """
import signal, sys
import numpy as np, windtunnel as wt

def interrupt(*_):
    raise KeyboardInterrupt

rng = np.random.default_rng(0)
count = 20_000
duration = rng.exponential(3600, count) + 1
jobs = dict(submit_time=np.zeros(count), duration=duration, estimate=2 * duration,
            num_gpus=rng.choice([1, 1, 2, 4, 8], count), vc=rng.choice(["a", "b", "c"], count),
            priority=rng.integers(0, 3, count))
tiny = dict(submit_time=[0], duration=[1], estimate=[1], num_gpus=[1])
wt.simulate(tiny, "64x8")  # what is imported with the first flight is
signal.signal(signal.SIGVTALRM, interrupt)
for policy, queueing in (("fifo", "conservative"), ("srtf", "conservative"), ("fifo", "easy")):
    for delay in (0.01, 0.02, 0.05, 0.1):
        signal.setitimer(signal.ITIMER_VIRTUAL, delay)
        try:
            wt.simulate(jobs, "64x8", policy, queueing=queueing)
        except KeyboardInterrupt:
            print("interrupted")
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        wt.simulate(tiny, "64x8", policy, queueing=queueing)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers of signals")
def test_a_flight_that_is_interrupted_raises_and_breaks_nothing() -> None:
    # Against hanging: a build that checks every index takes a minute, two beside other work.
    command = [sys.executable, "-c", FLIGHTS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)  # noqa: S603 - our own words
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.count("interrupted") >= 6


def test_an_interrupt_in_a_placement_of_ones_own_ends_the_flight() -> None:
    calls = []

    @wt.placement("interrupted")
    def interrupted(node: Any, request: Any) -> float:
        calls.append(node.name)
        raise KeyboardInterrupt

    jobs = {"submit_time": [0, 1], "duration": [5, 5], "num_gpus": [2, 2]}
    with pytest.raises(KeyboardInterrupt):
        wt.simulate(jobs, "2x4:A100", placement="interrupted")
    assert len(calls) == 1


def test_an_interrupt_in_a_tree_ends_the_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("windtunnel.cluster.topology.node_tree.NodeTree.place_gpus", interrupt)
    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [8]}
    with pytest.raises(KeyboardInterrupt):
        wt.simulate(jobs, "4x4", placement="tree", topology="rack=2")


def test_an_interrupt_while_power_limits_are_made_ends_the_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("windtunnel.sim.power.tables.Tables.make", interrupt)
    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [1]}
    power = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}
    with pytest.raises(KeyboardInterrupt):
        wt.simulate(jobs, "1x4", power=power, power_cap="400W,limits=optimised")


def test_a_key_that_writes_into_its_jobs_changes_nothing() -> None:
    class Scribbler(wt.Policy):
        name = "scribbler"
        every = 5.0

        def key(self, jobs: Any, now: float) -> Any:
            keys = jobs.num_gpus + 0.0 * now
            for name in ("number", "row", "remaining", "run_time", "running"):
                getattr(jobs, name)[:] = 1
            jobs.number[:] = 10**6
            return keys

    rng = np.random.default_rng(1)
    jobs = {"submit_time": np.arange(50.0), "duration": rng.uniform(5, 90, 50)}
    jobs |= {"num_gpus": rng.choice([1.0, 2, 4], 50)}
    given = wt.simulate(jobs, "2x4", Scribbler(), queueing="skip").table["start_time"]
    plain = wt.policy("plain")(lambda jobs: jobs.num_gpus)
    assert (
        given.to_pylist()
        == wt.simulate(jobs, "2x4", plain, queueing="skip").table["start_time"].to_pylist()
    )


FOLDERS = [Path(str(kernel.__file__)).parent, Path(str(serving.__file__)).parent / "kernels"]


@pytest.mark.parametrize("path", [p for folder in FOLDERS for p in folder.glob("*.py")], ids=str)
def test_the_loop_calls_no_code_in_python_where_it_cannot_raise(path: Path) -> None:
    """Blocks ``with cython.gil`` of functions that raise nothing: an interrupt would be lost."""
    tree = ast.parse(path.read_text("utf-8"))
    methods = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With) and ast.unparse(node.items[0]) == "cython.gil"
    ]
    seen: set[str] = set()
    found = []
    while blocks:
        for call in ast.walk(blocks.pop()):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            owner, name = ast.unparse(call.func.value), call.func.attr
            if owner == "numpy" and not isinstance(getattr(np, name), type(np.zeros) | np.ufunc):
                found.append(f"{call.lineno}: numpy.{name}")
            if owner == "self" and name in methods and name not in seen:
                seen.add(name)
                blocks.append(methods[name])  # type: ignore[arg-type]
    assert found == []
