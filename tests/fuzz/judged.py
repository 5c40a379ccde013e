"""Making a call in a process of its own, and judging what came of it.

It is a fork of this one, which has imported the command once; some calls start an interpreter.

``python tests/fuzz/judged.py --seed S --calls N`` makes calls and tells what failed, with the
command that makes the call again; ``--only NUMBER`` makes one and shows what it printed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gc
import json
import os
import resource
import secrets
import shlex
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from calls import Call, drawn
from right import FILES

#: What a call may take: s, and kB.
SECONDS, MEMORY = 20.0, 2 << 20
#: A machine that does other things is given so many times as long; it is CPU time that is judged.
_PATIENCE = 6


#: What becomes of a job that is flown.
FATES = tuple(
    f"num_{fate}"
    for fate in ("finished", "running", "waiting", "not_submitted", "rejected", "failed")
)


@dataclass(frozen=True)
class Verdict:
    """What came of a call.

    Attributes:
        failed: why it failed; empty = it did not.
        code: its exit code.
        printed: what it printed on stderr.
    """

    failed: str
    code: int
    printed: str


def judged(call: Call) -> Verdict:
    """Make a call in a fork of this process, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name, data in {**call.files, **_made(call)}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        child = os.fork()
        if child == 0:
            _call(call, folder)
        code, cpu, memory = _waited(child)
        printed = Path(folder, ".err").read_text("utf-8", "replace")
        left = [path.name for path in Path(folder).rglob(".windtunnel-*")]
        counted = code == 0 and "--json" in call.words and call.world in {"", "own"}
        lost = lost_rows(call, Path(folder)) if counted else ""
    failed = lost
    if code not in {0, 2}:
        failed = f"exit code {code}"
    elif "Traceback" in printed or "a fault in windtunnel" in printed:
        failed = "a traceback"
    elif code == 2 and not printed.strip() and call.world != "no stderr":
        failed = "refused without a word"
    elif len(printed) > 20_000:
        failed = f"{len(printed):,} characters of words"
    elif cpu > SECONDS:
        failed = f"{cpu:.0f} s"
    elif memory > MEMORY:
        failed = f"{memory / 2**20:.1f} GiB"
    elif left:
        failed = f"left {left}"
    return Verdict(failed, code, printed)


#: What some calls read was written by others: words that ask for it -> the call that writes it.
_WRITTEN_BY = {
    "r.parquet": "simulate synthetic:kalos:jobs=40 --cluster 64x8 --record r.parquet",
    "OUT": "study run study.toml --out OUT --workers 1",
}
_WRITTEN: dict[str, dict[str, bytes]] = {}


def _made(call: Call) -> dict[str, bytes]:
    """Return the files that a call reads and another one wrote: name -> content."""
    found: dict[str, bytes] = {}
    for name, words in _WRITTEN_BY.items():
        if name not in call.words or call.words[0] not in {"why", "study"}:
            continue
        if name not in _WRITTEN:
            with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
                Path(folder, "study.toml").write_bytes(FILES["study.toml"])
                Path(folder, "jobs.csv").write_text(
                    "job_id,submit_time,duration,num_gpus\n1,0,9,1\n"
                )
                child = os.fork()
                if child == 0:
                    _call(Call(tuple(words.split()), {}, world="own"), folder)
                assert _waited(child)[0] == 0, Path(folder, ".err").read_text()
                paths = [path for path in Path(folder).rglob("*") if path.is_file()]
                files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
            _WRITTEN[name] = {made: data for made, data in files.items() if made.startswith(name)}
        if call.words[:2] != ("study", "run"):
            found |= _WRITTEN[name]
    return found


def lost_rows(call: Call, folder: Path) -> str:
    """Return which jobs of ``jobs.csv`` are in no count that a call tells; empty = none.

    Each is kept or reported as dropped, has one fate, and is a row of the file that was written.

    Args:
        call: it ended well, and was asked for JSON.
        folder: where it was made.
    """
    try:
        answer = json.loads((folder / ".out").read_text("utf-8"))
    except ValueError as error:
        return f"no JSON: {error}"
    if not isinstance(answer, dict):
        return ""
    about = answer["trace"] if isinstance(answer.get("trace"), dict) else answer
    kept = about.get("num_jobs", about.get("rows_out"))
    if about.get("source") == "jobs.csv" and call.rows is not None and "dropped" in about:
        read, dropped = about.get("rows_read", about.get("rows_in")), sum(about["dropped"].values())
        if (read, kept) != (call.rows, call.rows - dropped):
            return f"of {call.rows} rows {read} were read, {dropped} dropped, {kept} kept"
    if call.words[0] not in {"simulate", "convert"} or "--window" in call.words:
        return ""  # who is submitted outside a window is flown, and in no count
    return _lost_jobs(answer, kept, folder)


def _lost_jobs(answer: dict[str, Any], kept: int, folder: Path) -> str:
    """Return how many of a trace's jobs have no fate, or no row of the file that was written."""
    fates = [answer[name] for name in FATES if name in answer]
    if fates and sum(fates) != kept:
        return f"fates of {sum(fates)} jobs of {kept}"
    if str(answer.get("out")).endswith(".csv") and answer.get("to") != "parquet":
        with (folder / answer["out"]).open(encoding="utf-8", newline="") as file:
            rows = sum(not line[0].startswith(";") for line in csv.reader(file))
            written = (
                rows if answer.get("to") == "swf" else rows - 1
            )  # only that has no line of names
        return "" if written == kept else f"{written} rows were written of {kept}"
    return ""


def _call(call: Call, folder: str) -> None:
    """Be the command; never return."""
    code = 99
    gc.freeze()  # what was there before is not looked through, and so not copied
    try:
        os.setsid()
        os.chdir(folder)
        clean = {
            "TMPDIR": folder,
            "HOME": folder,
            "WINDTUNNEL_CACHE": f"{folder}/cache",
            "NO_COLOR": "1",
        }
        clean |= {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
        tempfile.tempdir = None
        for number, name in ((0, os.devnull), (1, ".out"), (2, ".err")):
            file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            os.dup2(file, number)
        limit(call.world)
        if call.world == "own":
            paths = {"PATH": os.defpath, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
            python = (sys.executable, "-m", "windtunnel", *call.words)
            odd = {"LC_ALL": "C", "TZ": "Asia/Tokyo"}
            os.execve(sys.executable, python, {**paths, **clean, **odd})  # noqa: S606
        os.environ.update(clean)
        # Under pytest the streams of this process are pytest's own, not those of the system.
        sys.stdout, sys.stderr = (_stream(number, call.world) for number in (1, 2))
        from windtunnel.cli.root import windtunnel

        windtunnel.main(list(call.words), prog_name="windtunnel")
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - whatever came out is judged
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        from windtunnel import storage
        from windtunnel.report import renderer

        storage.drop_all_scratch()
        renderer._close()
        os._exit(code)


def limit(world: str) -> None:
    """Take from this process what a world lacks, and what would harm others."""
    cpu = int(SECONDS) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (2 * MEMORY << 10,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if world == "disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
    elif world == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (8_000_000 << 10,) * 2)
    elif world == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    elif world == "full stdout":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif world in {"no stdout", "no stderr"}:
        os.close(1 if world == "no stdout" else 2)


def _stream(number: int, world: str) -> Any:
    """Return a stream as the interpreter makes it at its start: None where it is closed."""
    if world == ("", "no stdout", "no stderr")[number]:
        return None
    errors = "strict" if number == 1 else "backslashreplace"
    return os.fdopen(number, "w", encoding="utf-8", errors=errors)


def _waited(child: int) -> tuple[int, float, int]:
    """Return a call's exit code, CPU seconds and memory, kB; it is ended where it hangs."""
    deadline = time.monotonic() + _PATIENCE * SECONDS
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            cpu = used.ru_utime + used.ru_stime
            return os.waitstatus_to_exitcode(status), cpu, used.ru_maxrss
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.wait4(child, 0)
            return 0, _PATIENCE * SECONDS, 0
        time.sleep(0.005)


def again(seed: str, number: int) -> str:
    """Return the command that makes a call once more."""
    return f"python tests/fuzz/judged.py --seed {shlex.quote(seed)} --only {number}"


#: What calls import besides the command's own modules, and modules that not every machine has.
_IMPORTED = (
    *("ibis.backends.duckdb", "ibis.backends.sql.compilers.duckdb", "duckdb", "jinja2", "altair"),
    *("pyarrow.parquet", "pyarrow.csv", "pyarrow.dataset", "rich.console", "rich.table", "scipy"),
)
_ELSEWHERE = ("windtunnel.lab", "windtunnel.__main__", "windtunnel.rl")


def prepare() -> None:
    """Import what calls import, so that a fork of this process need not."""
    import importlib
    import pkgutil

    import windtunnel
    from windtunnel.kernel.loading import BUILDS

    # Of the kernels' builds the one that is asked for comes by itself; others may not be loaded.
    builds = tuple(f".{build}" for build in BUILDS.values())
    names = [found.name for found in pkgutil.walk_packages(windtunnel.__path__, "windtunnel.")]
    for name in (*_IMPORTED, *names):
        if not (name.startswith(_ELSEWHERE) or name.endswith(builds)):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def main() -> int:
    """Make calls; return 1 where one failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    prepare()
    if given.only is not None:
        call = drawn(given.seed, given.only)
        print(shlex.join(("windtunnel", *call.words)))
        verdict = judged(call)
        print(verdict.printed, verdict.failed or "held", f"(exit code {verdict.code})")
        return int(bool(verdict.failed))
    codes: dict[int, int] = {}
    failures, made, begun = 0, 0, time.monotonic()
    for number in range(given.first, given.first + given.calls):
        if time.monotonic() - begun > given.seconds:
            break
        verdict = judged(drawn(given.seed, number))
        codes[verdict.code] = codes.get(verdict.code, 0) + 1
        made += 1
        if verdict.failed:
            failures += 1
            print(f"{verdict.failed}: {again(given.seed, number)}", flush=True)
    print(f"{made:,} calls of seed {given.seed}: {failures} failed; exit codes {codes}")
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
