"""`Confined`: a policy that nobody vouches for, in a process of its own.

The simulator asks it over a pipe and sends it only what a scheduler may know by then: the visible
columns of jobs that have arrived, who waits and runs, what is free. A tier-1 policy is asked at
each arrival, for the jobs that have arrived. docs/bench.md says what is promised, and what is not.
"""

from __future__ import annotations

import os
import select
import struct
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from windtunnel.board.flights import CheatError
from windtunnel.board.workloads import HIDDEN, VISIBLE
from windtunnel.errors import PolicyError
from windtunnel.sim.contract import Levels, Move, Policy, Preempt, Start, Wake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from windtunnel.sim.jobs import Jobs, JobView
    from windtunnel.sim.problem import Problem

#: CPU seconds that a run may take, and seconds until an answer comes.
CPU_SECONDS, PATIENCE = 60.0, 120.0
#: Columns of numbers among those that are shown.
_NUMBERS = frozenset(
    {
        *("submit_time", "num_gpus", "num_tasks", "num_cpus", "mem_gib", "priority", "estimate"),
        *("deadline", *HIDDEN),
    }
)
#: Attributes that would let the simulator decide by what is hidden, or change what jobs do.
_REFUSED: dict[str, Any] = {
    "by_remaining": False,
    "by": [],
    "estimates": "recorded",
    "elastic": False,
    "fills": False,
    "chooses_nodes": False,
}


class Process:
    """The process of a policy.

    Args:
        path: ``package.module:name``.
        clairvoyant: it may know what no scheduler does.
        hash_seed: of the order of its sets of texts.

    Raises:
        PolicyError: there is no such policy, or it cannot be flown so.
        CheatError: importing it does what a policy has no business with.
    """

    def __init__(self, path: str, *, clairvoyant: bool = False, hash_seed: int = 0) -> None:
        self.path, self.clairvoyant = path, clairvoyant
        folders = [one or os.getcwd() for one in sys.path]  # noqa: PTH109 - as texts
        environment = {
            "PYTHONPATH": os.pathsep.join(folders),
            "PYTHONHASHSEED": str(hash_seed),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self._child = subprocess.Popen(
            [sys.executable, "-B", "-m", "windtunnel.board.confined_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            bufsize=0,
        )
        try:
            self.like: dict[str, Any] = self.ask({"do": "load", "path": path})
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        """Check that the policy can be flown so."""
        for name, quiet in _REFUSED.items():
            found = self.like[name]
            if (list(found) if isinstance(quiet, list) else found) != quiet and not (
                self.clairvoyant and name in {"by_remaining", "estimates"}
            ):
                message = f"its {name} is {found!r}; a confined policy leaves it as it is"
                raise PolicyError(self.path, message)

    def ask(self, request: dict[str, Any]) -> Any:
        """Return the answer to a request that needs no questions.

        Raises:
            CheatError, PolicyError: the policy was caught, or failed.
        """
        self.put(request)
        return self.get()["of"]

    def put(self, request: dict[str, Any]) -> None:
        """Send a request."""
        sent = msgspec.msgpack.encode(request)
        assert self._child.stdin is not None  # noqa: S101 - a pipe
        try:
            self._child.stdin.write(struct.pack("<q", len(sent)) + sent)
        except BrokenPipeError:
            raise PolicyError(self.path, "its process has ended") from None

    def get(self) -> dict[str, Any]:
        """Return what comes back.

        Raises:
            CheatError, PolicyError: the policy was caught, failed, or says nothing.
        """
        (size,) = struct.unpack("<q", self._read(8))
        found: dict[str, Any] = msgspec.msgpack.decode(self._read(size))
        if found["is"] == "caught":
            when = "while it decides" if found["deciding"] else "while it is imported"
            raise CheatError(self.path, f"refused: {when}, {found['what']}")
        if found["is"] == "error":
            raise PolicyError(self.path, found["what"])
        return found

    def _read(self, size: int) -> bytes:
        assert self._child.stdout is not None  # noqa: S101 - a pipe
        end, parts = time.monotonic() + PATIENCE, []
        while size:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._child.stdout], [], [], max(left, 0))
            if not ready:
                self._child.kill()
                raise CheatError(self.path, f"refused: no answer came within {PATIENCE:g} s")
            part = self._child.stdout.read(size)
            if not part:
                raise PolicyError(self.path, "its process ended without a word")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def policy(self) -> Confined:
        """Return the policy, to be flown as any other."""
        return _TIERS[self.like["tier"], bool(self.like["watches"])](self)


class Confined(Policy):
    """A policy in another process: what the simulator asks.

    Args:
        process: where it is.
    """

    _problem: Problem

    def __init__(self, process: Process) -> None:
        like = process.like
        self.process = process
        self.name = process.path  # type: ignore[misc] # of this one alone
        self.queueing, self.preemptive = like["queueing"], bool(like["preemptive"])
        self.every, self.turn, self.by_service = like["every"], like["turn"], like["by_service"]
        self.by_remaining, self.estimates = bool(like["by_remaining"]), like["estimates"]
        if like["levels"] is not None:
            self.levels = Levels(*(tuple(part) for part in like["levels"]))
        self._known: dict[int, Any] = {}
        self._heard: list[tuple[int, bool, float]] = []

    def for_run(self, problem: Problem) -> Policy:
        """Return the policy in a process that is forked for this run alone."""
        flown = type(self)(self.process)
        flown._problem = problem  # noqa: SLF001 - its own kind
        return flown

    def _open(self, jobs: Jobs) -> None:
        """Begin the run; an earlier one is over."""
        names = (*VISIBLE, *HIDDEN) if self.process.clairvoyant else VISIBLE
        self._names = [name for name in names if name in jobs.table.column_names]
        self._jobs = jobs
        self._columns = {name: getattr(jobs, name) for name in self._names}
        _over(self.process)
        _RUNNING[id(self.process)] = self
        self.process.put(
            {
                "do": "run",
                "kinds": {name: name in _NUMBERS for name in self._names},
                "clairvoyant": self.process.clairvoyant,
                "sizes": self._problem.sizes.tolist(),
                "types": list(self._problem.types),
                "seconds": CPU_SECONDS,
            }
        )

    def _request(self, do: str, rows: list[tuple[int, int]], **more: Any) -> dict[str, Any]:
        """Return a request with what is new: (number, row) of jobs that have arrived."""
        places = [row for _, row in rows]
        columns = {name: self._columns[name][places].tolist() for name in self._names}
        heard, self._heard = self._heard, []
        new = {"number": [number for number, _ in rows], "columns": columns}
        return {"do": do, "new": new, "states": [], "heard": heard, **more}

    def _state(self, view: JobView) -> tuple[int, float, bool, float]:
        left = view.remaining if self.process.clairvoyant else float("nan")
        return view.number, view.run_time, bool(view.running), left


#: The run that each process is in, by the process's id.
_RUNNING: dict[int, Confined] = {}


def _over(process: Process) -> None:
    """End the run that a process is in."""
    if _RUNNING.pop(id(process), None) is not None:
        process.put({"do": "end"})


class ConfinedRank(Confined):
    """Tier 1: asked at each arrival, for all who have arrived."""

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the ranks, each as it was when the job arrived; float array (n,)."""
        self._open(jobs)
        submit = jobs.submit_time
        order = np.argsort(submit, kind="stable")
        found = np.empty(len(jobs))
        if self.process.clairvoyant:
            groups = [order]
        else:
            groups = np.split(order, np.flatnonzero(np.diff(submit[order])) + 1)
        for rows in groups:
            request = self._request("rank", [(row, row) for row in rows.tolist()])
            found[rows] = self.process.ask(request)
        _over(self.process)
        return found


class ConfinedKey(Confined):
    """Tier 2: asked for the keys of many at once."""

    def key(self, jobs: Any, now: float) -> Any:
        """Return the keys."""
        if not self._known:
            self._open(self._problem.jobs)
        numbers, rows = jobs.number.tolist(), jobs.row.tolist()
        new = [pair for pair in zip(numbers, rows, strict=True) if pair[0] not in self._known]
        self._known.update(dict(new))
        request = self._request("key", new, jobs=numbers, now=now)
        nothing = np.full(len(numbers), np.nan)
        left = jobs.remaining if self.process.clairvoyant else nothing
        request["states"] = list(
            zip(numbers, jobs.run_time.tolist(), jobs.running.tolist(), left.tolist(), strict=True)
        )
        return np.array(self.process.ask(request), dtype=np.float64)


class ConfinedDecisions(Confined):
    """Tier 3: asked for decisions, one at a time; it may ask about the cluster between them."""

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Yield the decisions."""
        if not self._known:
            self._open(self._problem.jobs)
        arrived = list(queue.arrived)
        new = [(job.number, job.row) for job in arrived if job.number not in self._known]
        self._known |= {job.number: job for job in arrived}
        waiting, running = list(queue), cluster.running
        request = self._request("decide", new, now=now, queue=[job.number for job in waiting])
        request["states"] = [self._state(job) for job in (*waiting, *running)]
        lists = {"arrived": arrived}
        lists |= {"finished": cluster.finished, "interrupted": cluster.interrupted}
        request |= {name: [job.number for job in jobs] for name, jobs in lists.items()}
        self.process.put(request)
        walk: Any = iter(())
        while (message := self.process.get())["is"] != "answer":
            if message["is"] == "decision":
                yield self._decision(message)
                states = [] if "job" not in message else [self._state(self._known[message["job"]])]
                self.process.put({"states": states})
            elif message["question"] == "walk":
                walk = iter(queue.startable)
                self.process.put({"answer": True})
            elif message["question"] == "next":
                job = next(walk, None)
                self.process.put({"answer": None if job is None else job.number})
            else:
                self.process.put({"answer": self._answer(message, cluster)})

    def _decision(self, message: dict[str, Any]) -> Any:
        if message["what"] == "wake":
            return Wake(float(message["at"]))
        job = self._job(message["job"])
        if message["what"] == "preempt":
            return Preempt(job)
        where = message["where"] and [tuple(pair) for pair in message["where"]]
        return Start(job, where) if message["what"] == "start" else Move(job, where)

    def _answer(self, message: dict[str, Any], cluster: Any) -> Any:
        """Return the answer to a question about the cluster."""
        question = message["question"]
        if question == "running":
            return [job.number for job in cluster.running]
        if question in _PLAIN:
            return getattr(cluster, question)
        if question == "fit":
            asked = message["gpus"] if "gpus" in message else self._job(message["job"])
            others = [self._job(number) for number in message["without"]]
            return cluster.fit(asked, message["types"], others)
        job = self._job(message["job"])
        if question == "start":
            return cluster.start(
                job, message["where"] and [tuple(pair) for pair in message["where"]]
            )
        if question == "where":
            return cluster.where(job)
        return cluster.demand_class(job)

    def _job(self, number: Any) -> Any:
        """Return a job that has arrived."""
        if number not in self._known:
            raise CheatError(self.name, f"refused: names job {number!r}, which has not arrived")
        return self._known[number]


_PLAIN = frozenset(
    {
        *("num_gpus", "free_gpus", "gpu_types", "free_by_type", "gpus_by_type", "free_by_node"),
        "usage_by_vc",
    }
)


class _Watching(Confined):
    """Hears who starts and stops, and passes it on with the next question."""

    def started(self, job: JobView, now: float) -> None:
        """Note a start."""
        self._note(job, now, started=True)

    def stopped(self, job: JobView, now: float) -> None:
        """Note a stop."""
        self._note(job, now, started=False)

    def _note(self, job: JobView, now: float, *, started: bool) -> None:
        if job.number in self._known:
            self._heard.append((job.number, started, now))


class _WatchingKey(_Watching, ConfinedKey):
    """Tier 2 that watches."""


class _WatchingDecisions(_Watching, ConfinedDecisions):
    """Tier 3 that watches."""


_TIERS: dict[tuple[int, bool], type[Confined]] = {
    (1, False): ConfinedRank,
    (1, True): ConfinedRank,
    (2, False): ConfinedKey,
    (2, True): _WatchingKey,
    (3, False): ConfinedDecisions,
    (3, True): _WatchingDecisions,
}
