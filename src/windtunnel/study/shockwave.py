"""Shockwave's policies on a trace: in the published rounds, or on the simulator of all others.

On one GPU type a job whose batch size changes needs its profile's seconds, whatever its steps per
second are in each phase: so on our simulator its work is its ideal duration, and only what the
policy believes (epochs, speeds now) follows the phases.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.policies.gavel.record import RoundLog, Spot
from windtunnel.policies.gavel.work import ALONE, Decision
from windtunnel.policies.gavel.work import Rules as RoundRules
from windtunnel.policies.shockwave.in_rounds import MARKET, SHARES, ShockwavePolicy
from windtunnel.policies.shockwave.market import Market
from windtunnel.policies.shockwave.published import PublishedRounds, RoundBooks
from windtunnel.policies.shockwave.testbed import LeasedRounds, drawn
from windtunnel.policies.shockwave.work import InPhase, TrainingJob
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.outcome import Outcome
from windtunnel.study.gavel_rounds import fly_on_the_engine, refuse_options
from windtunnel.study.gavel_work import work_of
from windtunnel.study.offered_load import with_arrivals
from windtunnel.study.resolving import settings_of_loop
from windtunnel.throughput.batch_sizes import DATASET_SIZES, MODES, Kind
from windtunnel.throughput.epoch_profile import EpochProfile, equal_epochs, profile_of
from windtunnel.throughput.measured import ThroughputTable, gavel_speeds
from windtunnel.throughput.shockwave import by_batch_size, split_job_type
from windtunnel.traces.shockwave import speeds_by_batch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.policies.gavel.work import Work
    from windtunnel.site.conditions import Conditions


#: Expected durations that agree to this part are the same.
_SAME = 1e-9
#: How much may wait for a market to note it: at each decision each job that is there.
_MOST_UNNOTED = 1_000_000


def fly_shockwave(
    table: pa.Table, cluster: ClusterSpec, policy: ShockwavePolicy, conditions: Conditions
) -> Outcome:
    """Fly a validated jobs table under one of Shockwave's policies.

    Args:
        table: jobs table; ``mode``, ``template`` and ``total_steps`` as the reader gives them say
            how batch sizes change; without them a job is taken to train in equal epochs.
        cluster: of one GPU type.
        policy: the policy.
        conditions: see `windtunnel.site`.

    Raises:
        SpecError: an option that the rounds have no use for; more than one GPU type.
        SchemaError: a job is larger than the cluster or lacks what a run needs.
        TraceError: the throughput table cannot be read.
    """
    if conditions.scheduler.compat not in (None, "shockwave"):
        message = (
            f"found {quote(conditions.scheduler.compat)}; Shockwave's policies take 'shockwave'."
        )
        raise SpecError("compat", message)
    mechanism = "published" if conditions.scheduler.compat else "deficit"
    refuse_options(conditions, mechanism, policy.filling)
    if policy.testbed and not conditions.scheduler.compat:
        raise SpecError("policy", f"{policy.text}: testbed=1 goes with compat=shockwave only.")
    if conditions.scheduler.compat and conditions.until is not None:
        raise SpecError("until", "the published rounds have no horizon; expected none.")
    arrivals = conditions.site.arrivals
    if arrivals is not None:
        table, conditions = with_arrivals(table, arrivals, None), conditions.having(arrivals=None)
    work, rows, reasons = _work(table, cluster, conditions)
    jobs = _training_jobs(table, rows, work, _speeds(conditions.scheduler.throughputs))
    if conditions.scheduler.compat:
        _check_phases(table, rows, jobs)
        outcome, parameters = _as_published(table, cluster, work, rows, jobs, policy, conditions)
    else:
        shares = _PhaseShares(jobs, work, policy)
        fill = policy.filling or RoundRules.fill
        rules = RoundRules(label=policy.label, length=policy.rules.length, fill=fill)
        outcome, *_ = fly_on_the_engine(table, cluster, work, rows, shares, rules, conditions)
        parameters = {"round": rules.length} | ({"fill": policy.filling} if policy.filling else {})
    settings = {**outcome.settings, "policy": policy.label, "parameters": parameters}
    notes = outcome.notes
    equal = sum(job.kind is None for job in jobs)
    if equal:
        notes = (*notes, f"{equal:,} jobs name no batch sizes: they train in equal epochs.")
    return replace(
        outcome,
        jobs=table,
        settings=settings | {"arrivals": arrivals},
        reasons={**outcome.reasons, **reasons},
        notes=notes,
    )


def published_books(
    jobs: Sequence[TrainingJob], num_gpus: int, policy: ShockwavePolicy, *, without: str = ""
) -> RoundBooks:
    """Return the published rounds of a policy on some jobs, by submission.

    Args:
        jobs: by submission.
        num_gpus: of the one type.
        policy: the policy; with ``testbed`` its rounds are those of real GPUs.
        without: a real run from which a testbed takes nothing; see `testbed.drawn`.
    """
    rounds = PublishedRounds(jobs, num_gpus, policy.rules)
    if policy.testbed:
        conditions = drawn(policy.rules.cut, policy.seed, without)
        rounds = LeasedRounds(jobs, num_gpus, policy.rules, conditions)
    if policy.allocation == MARKET:
        rounds.plan_with(Market(num_gpus, policy.market, rounds.books.speeds))
    else:
        rounds.share_by(SHARES[policy.allocation]())
    return rounds.run()


def training_jobs_of(
    table: pa.Table, cluster: ClusterSpec, conditions: Conditions
) -> list[TrainingJob]:
    """Return the jobs of a table, by submission, with their profiles.

    Raises:
        SpecError, SchemaError, TraceError: as `fly_shockwave`.
    """
    work, rows, _ = _work(table, cluster, conditions)
    return _training_jobs(table, rows, work, _speeds(conditions.scheduler.throughputs))


def _work(
    table: pa.Table, cluster: ClusterSpec, conditions: Conditions
) -> tuple[Work, np.ndarray, dict[int, str]]:
    """Return the work in seconds, the table row of each job, and why others are not in it."""
    plain = table.drop_columns(["total_steps"]) if "total_steps" in table.column_names else table
    work, rows, reasons = work_of(
        plain,
        cluster,
        speeds=gavel_speeds(),
        conditions=conditions,
        packed=False,
        parts=conditions.scheduler.compat is None,
        notes=[],
    )
    if work.num_types != 1:
        found = ", ".join(work.gpu_types)
        raise SpecError("cluster", f"Shockwave's policies know one GPU type; found {found}.")
    return work, rows, reasons


def _as_published(  # noqa: PLR0917 - what a run is made of
    table: pa.Table,
    cluster: ClusterSpec,
    work: Work,
    rows: np.ndarray,
    jobs: Sequence[TrainingJob],
    policy: ShockwavePolicy,
    conditions: Conditions,
) -> tuple[Outcome, dict[str, Any]]:
    num_gpus = int(work.num_gpus[0])
    books = published_books(jobs, num_gpus, policy)
    log = _log_of(books, work)
    flight = log.flight(rows, len(table), np.inf, with_nodes=not cluster.is_pool)
    note = _note_of(policy)
    placement = "pool" if cluster.is_pool else "best_fit"
    settings = settings_of_loop(conditions, placement, "rounds")
    rules = policy.rules
    parameters = {"round": rules.length, "gap": rules.gap, "cut": rules.cut}
    if policy.testbed:
        parameters |= {"testbed": 1, "seed": policy.seed}
    return Outcome(table, cluster, flight, settings, {}, (note,)), parameters


def _note_of(policy: ShockwavePolicy) -> str:
    if policy.testbed:
        return (
            "As real GPUs ran the published rounds, under conditions that are drawn: fly several "
            "seeds, and take their median."
        )
    return (
        "As the published simulator: rounds end when their last job hands in, a job that did not "
        f"run in the round before loses {policy.rules.overhead:g} s, and a job that ran longer "
        f"than {policy.rules.cut:g} times its ideal duration is ended, trained or not."
    )


def _log_of(books: RoundBooks, work: Work) -> RoundLog:
    """Return the stays of the jobs: rounds one after the other on the same GPUs are one."""
    log = RoundLog(work)
    node_of = np.repeat(work.node_index[0], work.node_sizes[0])
    held: dict[int, tuple[int, ...]] = {}
    before = -np.inf
    for at, placed in enumerate(books.schedule):
        begin = books.starts[at]
        for number in list(held):
            if placed.get(number) != held[number] or begin > before:
                log.stop(number, before)
                del held[number]
        for number, gpus in placed.items():
            if number not in held:
                nodes, counts = np.unique(node_of[list(gpus)], return_counts=True)
                log.start(number, begin, Spot(0, tuple(nodes.tolist()), tuple(counts.tolist())))
                held[number] = gpus
        before = books.ends[at] if at < len(books.ends) else begin
        for number in [n for n in placed if books.gone.get(n) == at + 1]:
            log.finish(number, books.end[number])
            del held[number]
    for number, of in books.run_time.items():
        log.gpu_time[number] = sum(of.values())
        log.type_time[number, 0] = sum(of.values()) / work.gangs[number]
    log.rounds, log.stopped_at = len(books.schedule), before
    return log


class _PhaseShares:
    """Asks a policy about jobs whose work is given in seconds; see `Allocator`."""

    def __init__(self, jobs: Sequence[TrainingJob], work: Work, policy: ShockwavePolicy) -> None:
        self._jobs, self._work, self._num_gpus = list(jobs), work, int(work.num_gpus[0])
        self._rule = None if policy.allocation == MARKET else SHARES[policy.allocation]()
        self._market = Market(self._num_gpus, policy.market, {})
        self._unnoted: list[tuple[float, np.ndarray, np.ndarray]] = []
        self._num_unnoted = 0

    def __call__(self, now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        members = np.column_stack([active, np.full(len(active), ALONE)])
        if self._rule is None:
            return Decision(members, self._by_market(now, active, left[active]))
        here = self._in_phase(active, left[active])
        shares = self._rule(now, here, self._num_gpus) if here else {}
        return Decision(members, np.array([[shares[row]] for row in active.tolist()]))

    def _by_market(self, now: float, active: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return the market's shares, shape (active jobs, 1).

        Where all jobs fit, each has all of its time. What the market is to note of them waits then
        until it is to choose, or until there is much of it: often neither comes.
        """
        self._unnoted.append((now, active, left))
        self._num_unnoted += len(active)
        fit = self._work.gangs[active].sum() <= self._num_gpus
        if not fit or self._num_unnoted > _MOST_UNNOTED:
            for then in self._unnoted:
                self._note(*then)
            self._unnoted.clear()
            self._num_unnoted = 0
        if fit:
            return np.ones((len(active), 1))
        shares = self._market.shares()
        return np.array([[shares[row]] for row in active.tolist()])

    def _note(self, now: float, active: np.ndarray, left: np.ndarray) -> None:
        """Let the market note who is there, and how far."""
        market, here = self._market, self._in_phase(active, left)
        market.close_round(list(market.jobs), here)
        market.round = int(now // market.rules.length)
        for row, job in here.items():
            if row not in market.jobs:
                market.admit(row, job, now)
        market.note_jobs()

    def _in_phase(self, active: np.ndarray, left: np.ndarray) -> dict[int, InPhase]:
        """Return how far the jobs are, by what is expected of them."""
        expected = self._work.expected_left(active, left)
        whole = self._work.steps[active] - left + expected
        here = {}
        for row, rest, total in zip(*(a.tolist() for a in (active, expected, whole)), strict=True):
            if self._work.expected[row] != 1:
                self._expect(row, total)
            here[row] = InPhase(self._jobs[row], rest)
        return here

    def _expect(self, row: int, seconds: float) -> None:
        """Let a job be expected to take so long in all: as much longer in every epoch."""
        job = self._jobs[row]
        longer = seconds / job.profile.duration
        if math.isclose(longer, 1, rel_tol=_SAME):
            return
        profile = EpochProfile(job.profile.batch_sizes, job.profile.seconds * longer)
        speeds = {size: speed / longer for size, speed in job.speeds.items()}
        self._jobs[row] = replace(job, profile=profile, speeds=speeds)
        self._market.jobs.pop(row, None)  # it comes into the market anew


def _speeds(given: Any) -> Mapping[tuple[str, int], Mapping[int, float]]:
    if isinstance(given, ThroughputTable):
        return by_batch_size(given)
    return speeds_by_batch(given)


def _training_jobs(
    table: pa.Table,
    rows: np.ndarray,
    work: Work,
    speeds: Mapping[tuple[str, int], Mapping[int, float]],
) -> list[TrainingJob]:
    """Return the jobs of the work with their profiles, in its order."""
    names = table.column_names
    phased = {"mode", "template", "total_steps"} <= set(names)
    modes = table["mode"].to_pylist() if phased else []
    steps = numeric_column(table, "total_steps", "steps") if phased else np.empty(0)
    types = table["template"].to_pylist()
    jobs = []
    for at, row in enumerate(rows.tolist()):
        name, submit = str(work.names[at]), float(work.submit[at])
        gpus = float(work.gangs[at])
        gpus = int(gpus) if gpus.is_integer() else gpus
        kind = _kind(types[row], gpus, modes[row]) if phased else None
        known = speeds.get((kind.model, kind.gpus), {}) if kind is not None else {}
        if kind is None or not (steps[row] > 0 and known):
            profile = equal_epochs(float(work.steps[at]))
            jobs.append(TrainingJob(name, gpus, submit, profile))
            continue
        total = int(steps[row])
        profile = profile_of(kind, total, known)
        jobs.append(TrainingJob(name, gpus, submit, profile, kind, total, known))
    return jobs


def _kind(job_type: str | None, gpus: float, mode: str | None) -> Kind | None:
    """Return what decides how a job's batch size changes; None = that is not known."""
    found = split_job_type(job_type or "")
    if (
        not isinstance(gpus, int)
        or found is None
        or found[0] not in DATASET_SIZES
        or mode not in MODES
    ):
        return None
    return Kind(found[0], found[1], gpus, mode)


def _check_phases(table: pa.Table, rows: np.ndarray, jobs: Sequence[TrainingJob]) -> None:
    """Check that the published rounds know every job's batch sizes."""
    unknown = [at for at, job in enumerate(jobs) if job.kind is None]
    if unknown:
        row = int(rows[unknown[0]])
        value = table["template"][row].as_py()
        rule = "a model with its batch size, its mode, steps and a measured speed"
        found = Violation("template", rule, len(unknown), row + 1, value, "row")
        raise SchemaError("jobs", [found])
