"""Workers that answer, fail and die: every call ends, whatever becomes of its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import windtunnel
from windtunnel.errors import SpecError
from windtunnel.study.worker_processes import WorkerDiedError, WorkerProcesses

#: Seconds in which anything here is over, or hangs.
LONG = 240


class _Strange(Exception):  # noqa: N818 - a name of anybody's
    """An error that cannot be pickled."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(one, other)
        self.held = threading.Lock()


def _pid() -> int:
    return os.getpid()


def _sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def _fail(kind: str) -> None:
    if kind == "ours":
        raise SpecError("--here", "found 1; expected 2.")
    if kind == "strange":
        raise _Strange(1, 2)
    raise SystemExit(3)


def _unanswerable() -> object:
    return threading.Lock()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_while_answering(size: int) -> bytes:
    """Return an answer, but be killed in the middle of the call that writes it."""
    doing = Path(f"/proc/self/task/{threading.get_native_id()}/syscall")

    def die() -> None:
        while (words := doing.read_text(encoding="ascii").split())[0] == "running" or (
            int(words[3], 16) < size
        ):
            pass
        _die()

    threading.Thread(target=die, daemon=True).start()
    return bytes(size)


@pytest.mark.slow
def test_answers_and_errors_come_home_from_workers_that_live_on() -> None:
    with WorkerProcesses(2) as workers:
        assert list(workers.map(abs, range(-50, 0))) == list(range(50, 0, -1))
        pids = {future.result(LONG) for future in [workers.submit(_pid) for _ in range(20)]}
        assert os.getpid() not in pids
        assert len(pids) <= 2
        with pytest.raises(SpecError, match="found 1; expected 2") as caught:
            workers.submit(_fail, "ours").result(LONG)
        assert "in _fail" in caught.value.__notes__[0]
        with pytest.raises(RuntimeError, match="_Strange"):
            workers.submit(_fail, "strange").result(LONG)
        with pytest.raises(TypeError, match="pickle"):
            workers.submit(_unanswerable).result(LONG)
        with pytest.raises((TypeError, AttributeError), match="pickle"):
            workers.submit(lambda: 1).result(LONG)
        with pytest.raises(SpecError):
            list(workers.map(_fail, ["ours"]))
        assert {workers.submit(_pid).result(LONG) for _ in range(20)} <= pids
    with pytest.raises(RuntimeError):
        workers.submit(_pid)


@pytest.mark.slow
def test_a_death_fails_its_call_alone() -> None:
    with WorkerProcesses(2) as workers:
        slow = workers.submit(_sleep, 1.0)
        deadly = [workers.submit(_die), workers.submit(_fail, "exit"), workers.submit(_die)]
        after = [workers.submit(_pid) for _ in range(4)]
        for future in deadly:
            with pytest.raises(WorkerDiedError):
                future.result(LONG)
        assert slow.result(LONG) > 0
        assert all(future.result(LONG) for future in after)


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/syscall", os.R_OK), reason="nobody tells who writes")
def test_a_worker_killed_while_its_answer_is_on_the_way_is_not_waited_for() -> None:
    with WorkerProcesses(1) as workers:
        for _ in range(3):
            with pytest.raises(WorkerDiedError):
                workers.submit(_die_while_answering, 1 << 28).result(LONG)
        assert workers.submit(_pid).result(LONG) > 0


@pytest.mark.slow
def test_an_idle_worker_that_was_killed_costs_one_call() -> None:
    with WorkerProcesses(1) as workers:
        os.kill(workers.submit(_pid).result(LONG), signal.SIGKILL)
        with pytest.raises(WorkerDiedError):
            workers.submit(_pid).result(LONG)
        assert workers.submit(_pid).result(LONG) > 0


@pytest.mark.slow
def test_workers_let_go_end_at_once() -> None:
    workers = WorkerProcesses(2)
    pids = [workers.submit(_pid).result(LONG)]
    long = [workers.submit(_sleep, 600.0) for _ in range(5)]
    begin = time.monotonic()
    while sum(future.running() for future in long) < 2:  # else more of them are cancelled
        assert time.monotonic() - begin < LONG
        time.sleep(0.01)
    workers.let_go()
    flying = [future for future in long if not future.cancelled()]
    assert len(flying) == 2
    for future in flying:
        assert isinstance(future.exception(LONG), WorkerDiedError)
    for pid in pids:
        while Path(f"/proc/{pid}/task").is_dir():
            assert time.monotonic() - begin < LONG
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        """
        from windtunnel.study.worker_processes import WorkerProcesses
        with WorkerProcesses(2) as workers:
            workers.submit(abs, -1).result()
        """,
        """
        import windtunnel as wt
        study = {"traces": ["synthetic:kalos:jobs=20"], "policies": ["fifo", "sjf"]}
        wt.run_study(wt.Study.from_mapping(study), "out", workers=2)
        """,
    ],
)
def test_a_script_that_workers_would_run_again_ends_with_a_sentence(
    tmp_path: Path, lines: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(lines))
    source = str(Path(windtunnel.__file__).parents[1])
    ran = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert ran.returncode == 1
    assert ran.stderr.count("Traceback") == 1
    assert 'put what it runs under if __name__ == "__main__":' in ran.stderr
