"""`generate`: jobs from a twin.

With the source's number of jobs the counts of strata, endings, known values and names are the
twin's own; with another number they are scaled by largest remainders. Run times and waits have the
published means group by group, so a stratum's run time is exact and the distance between the
distribution functions of source and twin is about one group (1 / bins of the stratum). GPU counts
and names are then exchanged between jobs of a stratum until GPU time by stratum, virtual cluster
and class of users is right to 0.05 % of all, where exchanges can bring it there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.checked import checked_count, checked_number
from windtunnel.errors import SpecError
from windtunnel.schema import conform
from windtunnel.traces.synthetic.attributes import job_ids
from windtunnel.traces.synthetic.draw_request import streams_of
from windtunnel.traces.synthetic.knots import largest_remainder
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.twin.arrivals import EPOCH
from windtunnel.traces.twin.bins import draw_bins
from windtunnel.traces.twin.groups import draw_groups, pack
from windtunnel.traces.twin.matching import match_product, match_shares
from windtunnel.traces.twin.model import NUMBERS
from windtunnel.traces.twin.people import draw_users
from windtunnel.traces.twin.split import draw_split
from windtunnel.traces.twin.submissions import batch_starts, draw_slots, match_load, spread_batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.twin.bins import Bins
    from windtunnel.traces.twin.model import Statistics

_MAX_JOBS = 10_000_000
_MAX_DAYS = 1_000_000
_STREAMS = ("endings", "sizes", "times", "numbers", "names", "people", "groups", "arrivals")


class _Draft:
    """A twin's jobs in the making, ordered by stratum; every array has shape (jobs,).

    Attributes:
        twin: what they are made from.
        stratum: stratum of each job, sorted.
        parts: the jobs of each stratum.
        rng: one stream a subject.
        of: the arrays made so far, by name.
        user_names: names by number of the user.
    """

    def __init__(self, twin: Statistics, jobs: int, seed: int) -> None:
        self.twin = twin
        self.totals = [stratum.jobs for stratum in twin.strata]
        counts = largest_remainder(self.totals, jobs)
        self.stratum = np.repeat(np.arange(len(counts)), counts)
        ends = np.cumsum(counts).tolist()
        self.parts = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
        self.scale = jobs / twin.jobs
        self.rng = streams_of(seed, _STREAMS)
        self.of: dict[str, NDArray[Any]] = {}
        self.user_names: list[str] = []

    def __len__(self) -> int:
        return len(self.stratum)


def generate(
    twin: Statistics, *, jobs: int | None = None, load: float = 1.0, seed: int = 0
) -> Trace:
    """Return a trace whose jobs have a twin's statistics.

    The trace lasts as long as the source, times the share of its jobs, over ``load``: the same
    number of submissions a day where ``load`` is 1. Time 0 is Monday 2001-01-01, 0 h.

    Args:
        twin: the statistics.
        jobs: how many; None = as many as the source.
        load: submissions a second over the source's.
        seed: same seed, same bytes; >= 0.

    Raises:
        SpecError: ``jobs < 1`` or too many, ``load <= 0``, not finite or so low that the twin would
            last for ever, ``seed < 0``.
    """
    count = twin.jobs if jobs is None else jobs
    _check(count, load, seed)
    days = twin.arrivals.num_days * count / twin.jobs / load
    if days > _MAX_DAYS:
        raise SpecError(
            "load", f"found {load!r}: the twin would last more than {_MAX_DAYS:,} days."
        )
    draft = _Draft(twin, count, seed)
    _draw_endings(draft)
    _draw_times(draft)
    _draw_sizes(draft)
    for name in NUMBERS:
        if name in twin.known:
            _draw_number(draft, name)
    _draw_estimates(draft)
    _draw_names(draft)
    _draw_groups(draft)
    _draw_submissions(draft, draft.scale / load)
    metadata = TraceMetadata(
        name="twin",
        source="windtunnel.traces.twin",
        epoch=EPOCH,
        zone="UTC",
        rows_read=count,
        notes=_notes(twin, count),
        settings={"jobs": count, "load": load, "seed": seed},
    )
    return Trace(_table(draft), metadata)


def _check(jobs: int, load: float, seed: int) -> None:
    checked_count("jobs", jobs, f"a whole number of 1 to {_MAX_JOBS:,} jobs", most=_MAX_JOBS)
    checked_number("load", load, above=0)
    checked_count("seed", seed, least=0, most=math.inf)


def _draw_endings(draft: _Draft) -> None:
    """Draw how jobs end, and which are of their stratum's rest."""
    draft.of["ending"], draft.of["of_rest"] = draw_split(
        draft.twin.ended, draft.totals, draft.stratum, draft.rng["endings"]
    )
    times = np.array([_bits(ending.times) for ending in draft.twin.endings])
    draft.of["has"] = times[draft.of["ending"]]


def _bits(times: list[str]) -> int:
    names = ("submit", "start", "end", "duration")
    return sum(1 << bit for bit, name in enumerate(names) if name in times)


def _draw_times(draft: _Draft) -> None:
    """Draw run times by stratum and ending, and waits by stratum."""
    twin, rng = draft.twin, draft.rng["times"]
    code = np.where(draft.of["of_rest"], len(twin.endings), draft.of["ending"])
    keys = [*(ending.name for ending in twin.endings), "rest"]
    durations = [bins for stratum in twin.strata for bins in stratum.duration.values()]
    spare_duration = twin.pooled.duration or _largest(durations)
    spare_wait = twin.pooled.wait or _largest([stratum.wait for stratum in twin.strata])
    duration, wait = np.zeros(len(draft)), np.zeros(len(draft))
    for stratum, part in zip(twin.strata, draft.parts, strict=True):
        for place, key in enumerate(keys):
            mine = part.start + np.flatnonzero(code[part] == place)
            duration[mine] = _values(stratum.duration.get(key), spare_duration, len(mine), rng)
        wait[part] = _values(stratum.wait, spare_wait, part.stop - part.start, rng)
    draft.of["duration"], draft.of["wait"] = duration, wait


def _largest(candidates: list[Bins | None] | list[Bins]) -> Bins | None:
    """Return the distribution of most jobs, for those whose stratum has none."""
    known = [bins for bins in candidates if bins is not None]
    return max(known, key=lambda bins: sum(bins.jobs), default=None)


def _values(
    own: Bins | None, spare: Bins | None, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw values from a stratum's distribution, else from the spare one, else 0."""
    bins = own or spare
    return np.zeros(count) if bins is None else draw_bins(bins, count, rng)


def _draw_sizes(draft: _Draft) -> None:
    """Draw GPUs and gang sizes, in the order that makes GPU time right."""
    rng = draft.rng["sizes"]
    gpus, tasks = np.full(len(draft), np.nan), np.zeros(len(draft), dtype=np.int64)
    timed = np.where(draft.of["has"] & 8, draft.of["duration"], 0.0)
    for stratum, part in zip(draft.twin.strata, draft.parts, strict=True):
        size = stratum.sizes
        index = np.repeat(
            np.arange(len(size.jobs)), largest_remainder(size.jobs, part.stop - part.start)
        )
        rng.shuffle(index)
        if size.num_gpus:
            drawn = np.array(size.num_gpus)[index]
            if stratum.gpu_time > 0 and len(size.jobs) > 1:
                target = stratum.gpu_time * (part.stop - part.start) / stratum.jobs
                order = match_product(drawn, timed[part], target, rng)
                drawn, index = drawn[order], index[order]
            gpus[part] = drawn
        tasks[part] = np.array(size.num_tasks)[index]
    draft.of["num_gpus"], draft.of["num_tasks"] = gpus, tasks
    draft.of["gpu_time"] = np.nan_to_num(gpus, nan=0.0) * timed


def _draw_known(draft: _Draft, name: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    known, _ = draw_split(draft.twin.known[name], draft.totals, draft.stratum, rng)
    return np.asarray(known == 1)


def _draw_number(draft: _Draft, name: str) -> None:
    """Draw a column of numbers; the twin holds cores and memory per GPU."""
    rng = draft.rng["numbers"]
    known = _draw_known(draft, name, rng)
    gpus = np.nan_to_num(draft.of["num_gpus"], nan=0.0)
    factor = np.where((gpus > 0) & (name in {"num_cpus", "mem_gib"}), gpus, 1.0)
    drawn = np.full(len(draft), np.nan)
    spare = getattr(draft.twin.pooled, name) or _largest(
        [getattr(stratum, name) for stratum in draft.twin.strata]
    )
    for stratum, part in zip(draft.twin.strata, draft.parts, strict=True):
        mine = part.start + np.flatnonzero(known[part])
        drawn[mine] = _values(getattr(stratum, name), spare, len(mine), rng) * factor[mine]
    draft.of[name] = np.rint(drawn) if name in draft.twin.whole else drawn


def _draw_estimates(draft: _Draft) -> None:
    """Draw requested times as a ratio to the run time, by parts in order of run time."""
    rng = draft.rng["numbers"]
    known = _draw_known(draft, "estimate", rng)
    duration = draft.of["duration"]
    estimate = np.full(len(draft), np.nan)
    by_stratum = [stratum.estimate for stratum in draft.twin.strata]
    spare = draft.twin.pooled.estimate or max(
        by_stratum, key=lambda parts: sum(sum(bins.jobs) for bins in parts)
    )
    for stratum, part in zip(draft.twin.strata, draft.parts, strict=True):
        mine = part.start + np.flatnonzero(known[part])
        ratios = stratum.estimate or spare
        if not len(mine):
            continue
        mine = mine[np.argsort(duration[mine], kind="stable")]
        for jobs, bins in zip(np.array_split(mine, len(ratios)), ratios, strict=True):
            estimate[jobs] = draw_bins(bins, len(jobs), rng) * np.maximum(duration[jobs], 1.0)
    # Rounded up: an estimate that was as long as the run must not become shorter.
    whole = "estimate" in draft.twin.whole
    draft.of["estimate"] = np.ceil(estimate - 1e-6) if whole else estimate


def _draw_names(draft: _Draft) -> None:
    """Draw GPU types, virtual clusters and users, whose shares of GPU time are then made right."""
    rng = draft.rng["names"]
    for column, category in draft.twin.names.items():
        code, _ = draw_split(category.jobs, draft.totals, draft.stratum, rng)
        target = np.array(category.gpu_time)
        draft.of[column] = match_shares(code, draft.stratum, draft.of["gpu_time"], target, rng)
    names = draft.twin.names["user_class"].names
    number = np.cumsum([bool(name) for name in names]) - 1
    user_class = np.where(np.array([bool(name) for name in names]), number, -1)
    draft.of["user"], users = draw_users(
        draft.twin.users,
        user_class[draft.of["user_class"]],
        draft.of["vc"] if draft.twin.users_keep_vc else np.zeros(len(draft), dtype=np.int64),
        draft.of["gpu_time"],
        draft.rng["people"],
    )
    digits = max(len(str(users)), 4)
    # Numbered at random: a name says nothing about its place.
    numbers = draft.rng["people"].permutation(users) + 1
    draft.user_names = [f"user-{n:0{digits}d}" for n in numbers.tolist()]


def _draw_groups(draft: _Draft) -> None:
    """Draw which jobs are runs of one template, and which were submitted in one batch."""
    twin, rng = draft.twin, draft.rng["groups"]
    has_template = _draw_known(draft, "template", rng)
    who = np.where(
        draft.of["user"] >= 0, len(twin.names["vc"].names) + draft.of["user"], draft.of["vc"]
    )
    block = who * len(twin.strata) + draft.stratum
    template = np.full(len(draft), -1, dtype=np.int64)
    mine = np.flatnonzero(has_template)
    if twin.templates is not None and len(mine):
        score = _template_scores(draft, mine, rng)
        mine = mine[np.lexsort((score, block[mine]))]
        template[mine] = pack(block[mine], draw_groups(twin.templates, len(mine)), rng)
    batch = np.arange(len(draft))
    if twin.arrivals.batches is not None:
        order = np.lexsort((rng.random(len(draft)), template, block))
        sizes = draw_groups(twin.arrivals.batches, len(draft))
        batch[order] = pack(block[order], sizes, rng)
    draft.of["template"], draft.of["batch"] = template, batch


def _template_scores(
    draft: _Draft, mine: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return what to sort a stratum's jobs by so that neighbours run about equally long.

    Noise of standard deviation n on logarithms of standard deviation S leaves neighbours s apart
    where n = s S / sqrt(S^2 - s^2); where s is not below S, run times and templates are unrelated.
    """
    logs = np.log(np.maximum(draft.of["duration"][mine], 1.0))
    spread = draft.twin.template_spread
    everywhere = float(logs.std())
    if spread >= everywhere:
        return rng.random(len(mine))
    noise = spread * everywhere / math.sqrt(everywhere**2 - spread**2)
    return np.asarray(logs + rng.normal(0.0, 1.0, len(mine)) * noise)


def _draw_submissions(draft: _Draft, stretch: float) -> None:
    """Draw submit times by stratum; a batch that is of several strata is one in each."""
    twin, rng = draft.twin, draft.rng["arrivals"]
    pairs, code, size = np.unique(
        np.stack([draft.stratum, draft.of["batch"]]),
        axis=1,
        return_inverse=True,
        return_counts=True,
    )
    code = code.reshape(-1)
    start = np.zeros(len(size))
    for number, (stratum, part) in enumerate(zip(twin.strata, draft.parts, strict=True)):
        jobs = part.stop - part.start
        if jobs:
            by_day = stratum.days or twin.arrivals.days
            slots = draw_slots(twin.arrivals, jobs, stretch, rng, by_day=by_day)
            mine = pairs[0] == number
            start[mine] = batch_starts(slots, size[mine], twin.arrivals.gap, rng)
    weight = np.bincount(code, draft.of["gpu_time"]).astype(np.float64)
    alike = pairs[0] * (len(draft) + 1) + size
    start = match_load(twin.arrivals, start, alike, weight, stretch=stretch, rng=rng)
    draft.of["submit"] = spread_batches(
        start, code, gap=twin.arrivals.gap, whole=twin.arrivals.whole, rng=rng
    )


def _table(draft: _Draft) -> pa.Table:
    """Return the jobs table, in order of submission, ties at random."""
    order = np.lexsort((draft.rng["groups"].permutation(len(draft)), draft.of["submit"]))
    of = {name: values[order] for name, values in draft.of.items()}
    twin, stratum = draft.twin, draft.stratum[order]
    start = of["submit"] + of["wait"]
    times = {
        "submit_time": (1, of["submit"]),
        "start_time": (2, start),
        "end_time": (4, start + of["duration"]),
        "duration": (8, of["duration"]),
    }
    columns: dict[str, Any] = {"job_id": job_ids("twin-", len(draft))}
    for name, (bit, values) in times.items():
        columns[name] = pa.array(values, mask=(of["has"] & bit) == 0)
    for name in ("estimate", "num_gpus", *(name for name in NUMBERS if name in of)):
        columns[name] = pa.array(of[name], from_pandas=True)
    columns["num_tasks"] = pa.array(of["num_tasks"].astype(np.int32), mask=of["num_tasks"] == 0)
    for name in ("gpu_type", "vc"):
        labels = pa.array([label or None for label in twin.names[name].names], pa.string())
        columns[name] = labels.take(pa.array(of[name]))
    columns["user"] = _named(draft.user_names, of["user"])
    digits = len(str(int(of["template"].max(initial=0)) + 1))
    names = [f"template-{n + 1:0{digits}d}" for n in range(int(of["template"].max(initial=-1)) + 1)]
    columns["template"] = _named(names, of["template"])
    workloads = pa.array([part.workload for part in twin.strata], pa.string())
    columns["workload"] = workloads.take(pa.array(stratum))
    states = pa.array([ending.status for ending in twin.endings], pa.string())
    columns["status"] = states.take(pa.array(of["ending"]))
    return conform(pa.table(columns), source="twin", ids_unique=True)


def _named(names: list[str], code: NDArray[np.int64]) -> pa.Array:
    """Return names by code, null for -1."""
    return pa.array(names, pa.string()).take(pa.array(code, mask=code < 0))


def _notes(twin: Statistics, count: int) -> tuple[str, ...]:
    size = "as many as" if count == twin.jobs else f"scaled from the {twin.jobs:,} of"
    return (
        f"A twin: no row is a real job. {count:,} jobs, {size} the source.",
        f"Made from statistics of which none rests on fewer than {twin.min_count} jobs.",
        (
            "Of the source: counts by workload, GPU class, state and name; run times and waits by "
            "stratum; GPU time by stratum, virtual cluster and class of users; days and hours of "
            "submission; sizes of batches and of templates."
        ),
        (
            "Not of the source: dates (time 0 is Monday 2001-01-01), names "
            + (f"(but those of {' and '.join(twin.kept)}), " if twin.kept else "")
            + "and how wait, run time and hour of submission of one job go together."
        ),
    )
