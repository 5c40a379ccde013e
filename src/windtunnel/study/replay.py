"""A given schedule, flown: `simulate --replay schedule.csv`.

A schedule says who ran on which GPUs, in each round (``round,job,gpus``; GPUs by number, apart by
blanks) or from when to when (``job,start,end`` in s, and ``gpus`` if known). Rounds get their times
from a clock (`windtunnel.policies.shockwave.replay.RoundClock`) whose numbers stand behind the
file's name, or are fitted to recorded completion times (``fit=jobs.csv``: ``job,jct``).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SpecError, quote
from windtunnel.plugins import parameters
from windtunnel.policies.scheduled import Scheduled, Stay
from windtunnel.policies.shockwave.replay import Replay, RoundClock
from windtunnel.sim.columns import with_numbers
from windtunnel.study.resume_costs import FREE
from windtunnel.study.rigid import fly_rigid
from windtunnel.traces.tabular import read_text
from windtunnel.traces.trace_name import TraceName

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.traces.tabular import TextTable

_MOST_ROUNDS = 1_000_000
_CLOCK = tuple(one.name for one in fields(RoundClock))


def fly_replay(table: pa.Table, cluster: ClusterSpec, conditions: Conditions) -> Outcome:
    """Fly a jobs table by the schedule of ``replay``: its jobs take as long as that gives them.

    Args:
        table: jobs table.
        cluster: where.
        conditions: see `windtunnel.site`.

    Raises:
        TraceError: the schedule cannot be read, or asks for GPUs that the cluster has not.
        SpecError: a number of the clock is wrong, or another policy was asked for.
    """
    if conditions.scheduler.policy.label != "fifo":
        message = f"the schedule decides; found policy {quote(conditions.scheduler.policy.label)}."
        raise SpecError("replay", message)
    name = TraceName.parse(str(conditions.scheduler.replay))
    words = [f"{word}={value}" for word, value in name.settings]
    given = parameters(words, [*_CLOCK, "fit"], where=f"replay {name}")
    rows = read_text(name.base)
    notes: list[str] = []
    if rows.has("round"):
        stays, clock = _of_rounds(rows, table, given, cluster, notes)
    elif given:
        raise SpecError("replay", f"{name.base} has times, and no rounds: a clock says nothing.")
    else:
        stays, clock = _of_times(rows, cluster), {}
    lasts = {job: sum(stay.end - stay.begin for stay in of) for job, of in stays.items()}
    duration = [lasts.get(job, 0.0) for job in table["job_id"].to_pylist()]
    flown = with_numbers(table, "duration", np.array(duration, dtype=np.float64))
    restore = conditions.scheduler.restore_time or 0.0  # its clock says what stops cost
    scheduled = conditions.having(policy=Scheduled(stays), replay=None, restore_time=restore)
    out = fly_rigid(flown, cluster, Scheduled(stays), scheduled)
    notes.insert(0, "A given schedule: each job takes as long as that gives it GPUs.")
    settings = {**out.settings, "replay": str(name), "parameters": clock}
    return replace(
        out,
        settings=settings,
        notes=(*notes, *(note for note in out.notes if not note.startswith(FREE))),
    )


def _of_rounds(
    rows: TextTable,
    table: pa.Table,
    given: dict[str, str],
    cluster: ClusterSpec,
    notes: list[str],
) -> tuple[dict[str, list[Stay]], dict[str, Any]]:
    """Return the stays of jobs in rounds, and the clock's numbers."""
    rows.require("round", "job", "gpus")
    rounded = rows.integers("round")
    off_limits = pc.or_(pc.less(rounded, 0), pc.greater_equal(rounded, _MOST_ROUNDS))
    off_limits = pc.fill_null(off_limits, fill_value=True)
    rows.refuse("round", off_limits, f"a round's number, 0 to {_MOST_ROUNDS - 1:,}")
    numbers = rounded.to_pylist()
    rounds: list[dict[str, tuple[int, ...]]] = [{} for _ in range(max(numbers) + 1)]
    for at, job, gpus in zip(numbers, _jobs(rows), _gpus(rows, cluster), strict=True):
        rounds[at][job] = gpus
    replay, clock = Replay(rounds), _clock(given)
    if "fit" in given:
        submit = dict(zip(*(table[n].to_pylist() for n in ("job_id", "submit_time")), strict=True))
        recorded = read_text(given["fit"])
        recorded.require("job", "jct")
        recorded.refuse("jct", pc.less_equal(recorded.finite("jct"), 0), "seconds > 0")
        both = zip(_jobs(recorded), recorded.finite("jct").to_pylist(), strict=True)
        jct = {
            job: seconds for job, seconds in both if seconds and job in submit.keys() & replay.last
        }
        if not jct:
            raise SpecError("replay: fit", f"{given['fit']} has no job of the schedule.")
        clock = replay.fitted(submit, jct, clock)
        off = 100 * replay.errors(clock, submit, jct)
        notes.append(
            f"Completion times differ from those recorded by {np.median(off):.2f} % in the median, "
            f"P90 {np.percentile(off, 90):.2f} %, {clock.stop_time:.3g} s a round with a stop and "
            f"{clock.delay:.4g} s at the start having been fitted to them."
        )
    stays = {job: list(of) for job, of in replay.stays(clock).items()}
    return stays, {name: getattr(clock, name) for name in _CLOCK}


def _clock(given: dict[str, str]) -> RoundClock:
    """Return the clock of the words behind a schedule's name."""
    numbers = {}
    for name in _CLOCK:
        if name in given:
            try:
                numbers[name] = float(given[name])
            except ValueError:
                numbers[name] = -1.0
            if not 0 <= numbers[name] < float("inf"):
                message = f"found {quote(given[name])}; expected seconds >= 0."
                raise SpecError(f"replay: {name}", message)
    return RoundClock(**numbers)


def _of_times(rows: TextTable, cluster: ClusterSpec) -> dict[str, list[Stay]]:
    """Return the stays of jobs that a schedule gives in seconds."""
    rows.require("job", "start", "end")
    begin, end = rows.finite("start"), rows.finite("end")
    for name, times_of in (("start", begin), ("end", end)):
        rows.refuse(name, pc.is_null(times_of), "seconds")
    rows.refuse("end", pc.less(end, begin), "a time not before the start")
    gpus: Any = _gpus(rows, cluster) if rows.has("gpus") else [()] * rows.num_rows
    stays: dict[str, list[Stay]] = {}
    times = zip(begin.to_pylist(), end.to_pylist(), _jobs(rows), gpus, strict=True)
    for start, stop, job, held in sorted(times):
        stays.setdefault(job, []).append(Stay(start, stop, held))
    return stays


def _jobs(rows: TextTable) -> list[str]:
    """Return the column ``job``."""
    rows.refuse("job", pc.is_null(rows.text("job")), "a job's id")
    found: list[str] = rows.text("job").to_pylist()
    return found


def _gpus(rows: TextTable, cluster: ClusterSpec) -> list[tuple[int, ...]]:
    """Return the column ``gpus``."""
    text, most = rows.text("gpus"), int(cluster.num_gpus)
    cells = [(cell or "").split() for cell in text.to_pylist()]
    wrong = [not all(w.isdecimal() and int(w) < most for w in cell) for cell in cells]
    rows.refuse("gpus", pa.array(wrong), f"numbers of GPUs, 0 to {most - 1}, apart by blanks")
    return [tuple(map(int, cell)) for cell in cells]
