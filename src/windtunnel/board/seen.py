"""What a confined policy sees: jobs that have arrived, the queue, the cluster; by name alone.

The same names as everywhere (docs/guides/write-a-policy.md), without what no scheduler knows:
reading that ends the process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.sim.contract import Move, Preempt, Start, Wake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from windtunnel.sim.contract import Policy

#: What is known only afterwards.
UNKNOWN: frozenset[str] = frozenset(
    {
        *("duration", "remaining", "steps", "iterations", "end_time", "start_time", "wait", "jct"),
        *("status", "wait_time", "recorded_duration", "num_failures", "lost_time"),
    }
)


class Line(Protocol):
    """The line to the simulator."""

    def get(self) -> Any:
        """Return the next request."""

    def put(self, kind: str, **content: Any) -> None:
        """Send an answer."""


class Ends(Protocol):
    """Who ends the process."""

    def caught(self, what: str) -> NoReturn:
        """End it."""


class Known:
    """The jobs that have arrived, by arrival: columns, and how each stands.

    Args:
        ends: who ends the process where something hidden is read.
        kinds: column -> whether it is of numbers.
        clairvoyant: the policy may know what is hidden.
    """

    def __init__(self, ends: Ends, kinds: dict[str, bool], *, clairvoyant: bool) -> None:
        self.ends, self.kinds, self.clairvoyant = ends, kinds, clairvoyant
        self.columns: dict[str, list[Any]] = {name: [] for name in kinds}
        self.place: dict[int, int] = {}
        self.views: list[SeenJob] = []
        self.state: dict[int, tuple[float, bool, float]] = {}

    def learn(self, new: dict[str, Any]) -> None:
        """Take in jobs that have arrived: ``number``, and a list a column."""
        for number in new["number"]:
            self.place[number] = len(self.views)
            self.views.append(SeenJob(self, number, len(self.views)))
        for name, values in self.columns.items():
            values.extend(new["columns"][name])

    def hear(self, states: list[tuple[int, float, bool, float]]) -> None:
        """Take in how jobs stand: (number, seconds on GPUs, runs, seconds left or NaN)."""
        for number, run_time, running, left in states:
            self.state[number] = (run_time, running, left)

    def view(self, number: int) -> SeenJob:
        """Return a job."""
        return self.views[self.place[number]]

    def array(self, name: str, places: Sequence[int] | slice) -> np.ndarray:
        """Return a column of some jobs, by their places here."""
        if name in self.columns:
            kind = np.float64 if self.kinds[name] else object
            whole = np.array(self.columns[name], dtype=kind)
            found: np.ndarray = whole[places] if isinstance(places, slice) else whole[list(places)]
            found.flags.writeable = False
            return found
        chosen = (
            self.views[places] if isinstance(places, slice) else [self.views[p] for p in places]
        )
        return np.array([getattr(job, name) for job in chosen])

    def refuse(self, name: str) -> NoReturn:
        """Refuse a name that is no column.

        Raises:
            AttributeError: there is none such; of a hidden one the process ends.
        """
        if name in UNKNOWN:
            self.ends.caught(f"reads {name!r}, which no scheduler knows")
        raise AttributeError(f"jobs have no column {name!r}; they have: {', '.join(self.columns)}")


class SeenJob:
    """One job."""

    __slots__ = ("_known", "_place", "number")

    def __init__(self, known: Known, number: int, place: int) -> None:
        self._known, self.number, self._place = known, number, place

    def __getattr__(self, name: str) -> Any:
        known = self._known
        if name in known.columns:
            return known.columns[name][self._place]
        run_time, running, left = known.state.get(self.number, (0.0, False, float("nan")))
        if name == "run_time":
            return run_time
        if name == "running":
            return running
        if name == "row":
            return self.number
        if name == "remaining" and known.clairvoyant:
            return left
        return known.refuse(name)

    def __repr__(self) -> str:
        return f"Job({self.job_id!r}, num_gpus={self.num_gpus:g})"


class SeenJobs:
    """Several jobs, a column an array: all that have arrived, or some."""

    def __init__(self, known: Known, places: Sequence[int] | slice = slice(None)) -> None:
        self._known, self._places = known, places

    def __len__(self) -> int:
        return len(
            self._known.views[self._places] if isinstance(self._places, slice) else self._places
        )

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name == "table":
            raise AttributeError(name)
        if name not in {*self._known.columns, "number", "row", "run_time", "running"} and not (
            name == "remaining" and self._known.clairvoyant
        ):
            self._known.refuse(name)
        return self._known.array(name, self._places)


@dataclass(frozen=True)
class SeenSite:
    """The cluster, for ``for_run``.

    Attributes:
        sizes: GPUs of each node.
        types: GPU type of each node.
    """

    sizes: tuple[int, ...]
    types: tuple[str | None, ...]


class Answering:
    """One run's answers.

    Args:
        line: to the simulator.
        ends: who ends the process.
        policy: as it was imported.
        request: of the run: ``kinds``, ``sizes``, ``types``, ``clairvoyant``.
    """

    def __init__(self, line: Line, ends: Ends, policy: Policy, request: Any) -> None:
        self.line = line
        self.known = Known(ends, request["kinds"], clairvoyant=request["clairvoyant"])
        site: Any = SeenSite(tuple(request["sizes"]), tuple(request["types"]))
        self.policy = policy.for_run(site)

    def answer(self) -> None:
        """Answer until the run is over."""
        while True:
            request = self.line.get()
            if request["do"] == "end":
                return
            self.known.learn(request["new"])
            self.known.hear(request["states"])
            for number, what, time in request["heard"]:
                notify = self.policy.started if what else self.policy.stopped
                notify(self.known.view(number), time)  # type: ignore[arg-type] # it looks like one
            getattr(self, request["do"])(request)

    def rank(self, request: Any) -> None:
        """Rank all who have arrived, and tell the ranks of those who came last."""
        jobs: Any = SeenJobs(self.known)
        ranks = np.asarray(self.policy.rank(jobs), dtype=np.float64)
        if ranks.shape != (len(jobs),):
            raise SpecError("rank", f"returned shape {ranks.shape}; expected ({len(jobs)},).")
        self.line.put("answer", of=ranks[len(ranks) - len(request["new"]["number"]) :].tolist())

    def key(self, request: Any) -> None:
        """Tell the keys of some jobs."""
        numbers = request["jobs"]
        policy: Any = self.policy
        if policy.takes_many:
            jobs = SeenJobs(self.known, [self.known.place[number] for number in numbers])
            found = np.asarray(policy.key(jobs, request["now"]), dtype=np.float64).tolist()
        else:
            found = [float(policy.key(self.known.view(n), request["now"])) for n in numbers]
        self.line.put("answer", of=found)

    def decide(self, request: Any) -> None:
        """Tell decisions, one at a time."""
        queue = SeenQueue(self, request)
        cluster = SeenCluster(self, request, queue)
        policy: Any = self.policy
        for decision in policy.decide(request["now"], queue, cluster) or ():
            self.tell(decision, queue)
        self.line.put("answer", of=None)

    def tell(self, decision: Any, queue: SeenQueue) -> None:
        """Send a decision, and wait until it is carried out.

        Raises:
            SpecError: it is none that a confined policy has.
        """
        job = getattr(decision, "job", None)
        number: Any = None if job is None else job.number
        if isinstance(decision, Start) and decision.rate == 1 and decision.beside is None:
            sent: dict[str, Any] = {"what": "start", "job": number, "where": decision.where}
            queue.leaves(number)
        elif isinstance(decision, Preempt):
            sent = {"what": "preempt", "job": number}
            queue.joins(number)
        elif isinstance(decision, Move) and decision.rate is None:
            sent = {"what": "move", "job": number, "where": decision.where}
        elif isinstance(decision, Wake):
            sent = {"what": "wake", "at": float(decision.at)}
        else:
            self.known.ends.caught(f"decides {decision!r}: a policy cannot make a job faster")
        self.line.put("decision", **sent)
        self.known.hear(self._back()["states"])

    def ask(self, question: str, **more: Any) -> Any:
        """Return the answer to a question about the cluster."""
        self.line.put("ask", question=question, **more)
        return self._back()["answer"]

    def _back(self) -> Any:
        """Return what the simulator says to it; the process ends where it has ended the run."""
        found = self.line.get()
        if found.get("do") == "end":
            os._exit(0)
        return found


class SeenQueue:
    """Those who wait, in order of arrival."""

    def __init__(self, run: Answering, request: Any) -> None:
        self._run, self._waiting = run, dict.fromkeys(request["queue"])
        self.arrived = [run.known.view(number) for number in request["arrived"]]

    def leaves(self, number: int) -> None:
        """Note that a job is started."""
        self._waiting.pop(number, None)

    def joins(self, number: int) -> None:
        """Note that a job waits again, in its old place."""
        self._waiting = dict.fromkeys(sorted((*self._waiting, number)))

    @property
    def startable(self) -> Iterator[SeenJob]:
        """A walk along those who fit when their turn comes."""
        self._run.ask("walk")
        while (number := self._run.ask("next")) is not None:
            yield self._run.known.view(number)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[SeenJob]:
        for number in list(self._waiting):
            if number in self._waiting:
                yield self._run.known.view(number)

    def __contains__(self, job: object) -> bool:
        return isinstance(job, SeenJob) and job.number in self._waiting

    def __getitem__(self, index: Any) -> Any:
        views = [self._run.known.view(number) for number in self._waiting]
        return views[index]

    def __getattr__(self, name: str) -> np.ndarray:
        known = self._run.known
        jobs = SeenJobs(known, [known.place[number] for number in self._waiting])
        found: np.ndarray = getattr(jobs, name)
        return found


#: Questions without more to say; the simulator answers these and no others.
PLAIN: tuple[str, ...] = (
    *("num_gpus", "free_gpus", "gpu_types", "free_by_type", "gpus_by_type", "free_by_node"),
    "usage_by_vc",
)


class SeenCluster:
    """The cluster at this instant."""

    def __init__(self, run: Answering, request: Any, queue: SeenQueue) -> None:
        self._run, self._queue = run, queue
        self.finished = [run.known.view(number) for number in request["finished"]]
        self.interrupted = [run.known.view(number) for number in request["interrupted"]]

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN:
            found = self._run.ask(name)
            return tuple(found) if name == "gpu_types" else found
        raise AttributeError(f"the cluster has no {name!r}")

    @property
    def running(self) -> list[SeenJob]:
        """Running jobs in order of start."""
        return [self._run.known.view(number) for number in self._run.ask("running")]

    def where(self, job: SeenJob) -> Any:
        """Return where a job runs, or None."""
        return _pairs(self._run.ask("where", job=job.number))

    def demand_class(self, job: SeenJob) -> int:
        """Return the number of the job's class."""
        found: int = self._run.ask("demand_class", job=job.number)
        return found

    def fit(self, job: Any, gpu_types: Any = None, without: Any = ()) -> Any:
        """Return where a job, or so many GPUs, would go, or None."""
        asked = {"job": job.number} if isinstance(job, SeenJob) else {"gpus": float(job)}
        types = None if gpu_types is None else list(gpu_types)
        others = [other.number for other in without]
        return _pairs(self._run.ask("fit", **asked, types=types, without=others))

    def start(self, job: SeenJob, where: Any = None) -> bool:
        """Start a waiting job at once; return whether it fitted."""
        found: bool = self._run.ask("start", job=job.number, where=where)
        if found:
            self._queue.leaves(job.number)
        return found


def _pairs(found: Any) -> Any:
    return None if found is None else [tuple(pair) for pair in found]
