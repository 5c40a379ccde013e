"""Groups of recurring jobs whose runs may overlap (Zeus, NSDI'23, section 4 and its simulator).

When runs are in flight follows from the trace's start and end times alone; energy and time of a
run are scaled by its job's ``runtime_ratio``. A run that fails is submitted again where it ended,
for as long as it lasted.

The published simulator has three defects, which ``compat="zeus"`` brings back:

* A job submitted while another is in flight always takes the cheapest batch size known, so that a
  group whose jobs always overlap never explores. Here the optimiser is asked every time, and the
  cheapest size serves only while it waits for a result.
* A run that the threshold does not let start is learnt as cost 0, the best there can be. Here it is
  learnt as far too dear, as it is where runs do not overlap, and another is tried at once.
* The threshold follows the cheapest run. Here it follows the cheapest job, its failed runs
  included, as it does where runs do not overlap.
"""

from __future__ import annotations

import heapq
import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.energy.tuning import MAX_TRIES, Knobs, Tuning
from windtunnel.errors import InfeasibleError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windtunnel.energy.runs import Run
    from windtunnel.energy.workload import Workload

#: Simulators whose behaviour can be had instead of the sane one.
COMPAT = ("zeus",)


class Submission(NamedTuple):
    """A job of a group.

    Attributes:
        start_time: s.
        end_time: s, not before the start.
        runtime_ratio: its run time over the mean of all jobs of its dataset.
    """

    start_time: float
    end_time: float
    runtime_ratio: float


class GroupRun(NamedTuple):
    """A run of a job of a group, in order of their ends.

    Attributes:
        submission: when it ran; of a repeated run, its own time.
        run: what it did, not scaled.
    """

    submission: Submission
    run: Run

    @property
    def energy_j(self) -> float:
        """Scaled energy, J."""
        return self.run.energy_j * self.submission.runtime_ratio

    @property
    def time_s(self) -> float:
        """Scaled time, s."""
        return self.run.time_s * self.submission.runtime_ratio

    @property
    def cost_j(self) -> float:
        """Scaled cost, J."""
        return self.run.cost_j * self.submission.runtime_ratio


@dataclass(frozen=True)
class GroupResult:
    """What happened to a group.

    Attributes:
        group: its name.
        dataset: what its jobs train.
        seed: of everything random in it.
        num_jobs: jobs, repeated runs not counted.
        runs: in order of their ends; runs that could not start are not among them.
        refused: runs that the threshold did not let start.
        notes: what a reader of the numbers must know.
    """

    group: str
    dataset: str
    seed: int
    num_jobs: int
    runs: tuple[GroupRun, ...]
    refused: int
    notes: tuple[str, ...]

    @property
    def num_failed(self) -> int:
        """Runs that did not reach the target."""
        return sum(not one.run.reached for one in self.runs)

    @property
    def energy_j(self) -> float:
        """Scaled energy of all runs, J."""
        return sum(one.energy_j for one in self.runs)

    @property
    def time_s(self) -> float:
        """Scaled time of all runs, s."""
        return sum(one.time_s for one in self.runs)

    @property
    def cost_j(self) -> float:
        """Scaled cost of all runs, J."""
        return sum(one.cost_j for one in self.runs)

    def runs_by_batch_size(self) -> dict[int, int]:
        """Return how often each batch size ran, sizes ascending."""
        counts: dict[int, int] = {}
        for one in sorted(self.runs, key=lambda one: one.run.batch_size):
            counts[one.run.batch_size] = counts.get(one.run.batch_size, 0) + 1
        return counts


def group_seed(group: str) -> int:
    """Return a group's seed: the Adler-32 checksum of its name.

    >>> group_seed("fixture-serial-cifar100")
    1837303928
    """
    return zlib.adler32(group.encode())


def simulate_group(
    workload: Workload,
    submissions: Iterable[Sequence[float]],
    group: str,
    *,
    optimizer: Any = "zeus",
    power_limits: Any = "jit",
    eta: float = 0.5,
    beta: float = 2.0,
    seed: int | None = None,
    compat: str | None = None,
) -> GroupResult:
    """Simulate the jobs of one group.

    Args:
        workload: what they train, and where.
        submissions: start, end and runtime ratio of each; sorted here by start, ties in the order
            given.
        group: its name, from which the seed follows.
        optimizer: see `windtunnel.energy.recurring.simulate_recurrences`.
        power_limits: see there.
        eta: weight of energy against time, 0 to 1.
        beta: a run is stopped at so many times the cheapest job's cost; infinite = never.
        seed: of everything random; None = `group_seed`.
        compat: ``zeus`` = as the published simulator does it; None = without its defects.

    Raises:
        SpecError: an unknown name, or a number out of range.
        PolicyError: an optimiser proposes what was not measured.
        InfeasibleError: a job fails `MAX_TRIES` times.
    """
    if compat is not None and compat not in COMPAT:
        raise SpecError.unknown("compat", compat, COMPAT)
    chosen = group_seed(group) if seed is None else seed
    tuning = Tuning(workload, optimizer, power_limits, eta=eta, beta=beta, seed=chosen)
    kind = _AsPublished if compat else _Overlapping
    flights = kind(tuning, f"{group}, {workload.name}, {tuning.optimizer.name}")
    jobs = sorted((Submission(*job) for job in submissions), key=lambda job: job.start_time)
    for job in jobs:
        if not (job.end_time >= job.start_time and 0 < job.runtime_ratio < math.inf):
            raise SpecError(
                f"group {group}", f"found {tuple(job)}; expected end >= start and a ratio > 0."
            )
        flights.land(job.start_time)
        flights.submit(job)
    flights.land(math.inf)
    return GroupResult(
        group,
        workload.job.dataset,
        chosen,
        len(jobs),
        tuple(flights.runs),
        flights.refused,
        tuning.optimizer.notes,
    )


class _Flight(NamedTuple):
    """A run that was submitted; ``tries`` and ``spent`` are those of its job before it."""

    end_time: float
    order: int
    submission: Submission
    knobs: Knobs
    run: Run
    tries: int
    spent: float


class _Overlapping:
    """The runs in flight, and what is learnt when they land."""

    def __init__(self, tuning: Tuning, what: str) -> None:
        self.runs: list[GroupRun] = []
        self.refused = 0
        self._tuning = tuning
        self._what = what
        self._flying: list[_Flight] = []
        self._submitted = 0
        self._best: tuple[float, Knobs | None] = (math.inf, None)

    def submit(self, job: Submission, tries: int = 0, spent: float = 0.0) -> None:
        """Submit a run; one that may not start is learnt at once, and another is tried."""
        while True:
            tries += 1
            self._check(tries)
            knobs = self._ask()
            run = self._tuning.run(knobs)
            if run.started:
                break
            self.refused += 1
            self._tuning.tell(run)
        self._take_off(job, knobs, run, tries, spent)

    def land(self, now: float) -> None:
        """Learn from every run that has ended, in order of their ends; submit failed ones again."""
        while self._flying and self._flying[0].end_time <= now:
            flight = heapq.heappop(self._flying)
            self._learn(flight)
            if not flight.run.reached:
                first, last, ratio = flight.submission
                again = Submission(last, last + (last - first), ratio)
                self.submit(again, flight.tries, flight.spent + flight.run.cost_j)

    def _ask(self) -> Knobs:
        knobs = self._tuning.ask()
        return self._cheapest() if knobs is None else self._first(knobs)

    def _learn(self, flight: _Flight) -> None:
        self._tuning.tell(flight.run)
        self.runs.append(GroupRun(flight.submission, flight.run))
        if flight.run.reached:
            job_cost = flight.spent + flight.run.cost_j
            self._tuning.min_cost = min(self._tuning.min_cost, job_cost)
            self._note_best(flight)

    def _note_best(self, flight: _Flight) -> None:
        if flight.run.cost_j < self._best[0]:
            self._best = (flight.run.cost_j, flight.knobs)

    def _first(self, knobs: Knobs) -> Knobs:
        """Keep the first proposal: it serves while nothing is known."""
        if self._best[1] is None:
            self._best = (math.inf, knobs)
        return knobs

    def _cheapest(self) -> Knobs:
        knobs = self._best[1]
        if knobs is None:
            raise InfeasibleError(self._what, "the optimiser waits for a result before any run")
        return knobs

    def _take_off(self, job: Submission, knobs: Knobs, run: Run, tries: int, spent: float) -> None:
        self._submitted += 1
        flight = _Flight(job.end_time, self._submitted, job, knobs, run, tries, spent)
        heapq.heappush(self._flying, flight)

    def _check(self, tries: int) -> None:
        if tries > MAX_TRIES:
            raise InfeasibleError(
                self._what, f"a job failed {MAX_TRIES} times; a larger beta stops fewer runs"
            )


class _AsPublished(_Overlapping):
    """The same with the published simulator's three defects."""

    def submit(self, job: Submission, tries: int = 0, spent: float = 0.0) -> None:
        """Submit a run; one that may not start takes its job's time all the same."""
        self._check(tries + 1)
        knobs = self._ask()
        run = self._tuning.run(knobs, refusal_profiles=True)
        self._take_off(job, knobs, run, tries + 1, spent)

    def _ask(self) -> Knobs:
        return self._cheapest() if self._flying else super()._ask()

    def _learn(self, flight: _Flight) -> None:
        self._tuning.tell(flight.run, refused_cost=0.0)
        if not flight.run.started:
            self.refused += 1
            return
        self.runs.append(GroupRun(flight.submission, flight.run))
        if flight.run.reached:
            self._tuning.min_cost = min(self._tuning.min_cost, flight.run.cost_j)
            self._note_best(flight)
