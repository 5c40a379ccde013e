"""`fit`: learn a trace's statistics; `twin.model` states what leaves and what does not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_count
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.traces.trace import Trace
from windtunnel.traces.twin.arrivals import Arrivals, Runs, clock_seconds, fit_arrivals
from windtunnel.traces.twin.bins import rounded
from windtunnel.traces.twin.groups import fit_groups
from windtunnel.traces.twin.model import (
    FORMAT,
    LEAST_COUNT,
    NUMBERS,
    SCALED,
    TIMES,
    Ending,
    Pooled,
    Stratum,
)
from windtunnel.traces.twin.people import (
    fit_classes,
    fit_known,
    fit_names,
    fit_users,
    keep_vc,
    other_than,
)
from windtunnel.traces.twin.sizes import fit_sizes
from windtunnel.traces.twin.split import Rules, Split, fit_split
from windtunnel.traces.twin.strata import (
    Columns,
    Strata,
    class_name,
    columns_of,
    dealt_names,
    strata_of,
)
from windtunnel.traces.twin.twin import Twin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.trace import TraceMetadata
    from windtunnel.traces.twin.bins import Bins

#: Parts of a stratum, by run time, in which the ratio of estimate to run time is published.
_ESTIMATE_PARTS = 4


def fit_numbers(
    table: Columns,
    stratum: NDArray[np.int64],
    strata: int,
    cells: tuple[NDArray[np.int64], list[str]],
    rules: Rules,
) -> tuple[list[dict[str, Any]], Pooled]:
    """Return the distributions of each stratum, and those of what strata cannot tell.

    Args:
        stratum: of each job, shape (jobs,).
        cells: the cell within its stratum by which a job's run time is published, shape (jobs,),
            and the names of these cells.
        rules: how small a group may be.

    Returns:
        Attributes of `Stratum` by name, one dictionary a stratum; and the pooled ones.
    """
    cell, names = cells
    by_stratum: list[dict[str, Any]] = [{"duration": {}} for _ in range(strata)]
    cells_of = stratum * len(names) + cell
    own, pooled = _by_cell(table.duration, cells_of, strata * len(names), rules, spread=True)
    for number, bins in enumerate(own):
        if bins is not None:
            by_stratum[number // len(names)]["duration"][names[number % len(names)]] = bins
    together: dict[str, Any] = {"duration": pooled}
    gpus = np.nan_to_num(table.num_gpus, nan=0.0)
    per_gpu = np.where(gpus > 0, gpus, 1.0)
    for name in ("wait", *NUMBERS):
        scale = per_gpu if name in {"num_cpus", "mem_gib"} else 1.0
        own, together[name] = _by_cell(
            getattr(table, name) / scale, stratum, strata, rules, spread=name == "wait"
        )
        for part, bins in zip(by_stratum, own, strict=True):
            part[name] = bins
    ratio = table.estimate / np.maximum(table.duration, 1.0)
    published = rules.published(np.isfinite(ratio), stratum, strata)
    for number, part in enumerate(by_stratum):
        mine = stratum == number
        part["estimate"] = _ratios(ratio[mine], table.duration[mine], rules) * published[number]
    rest = ~np.array(published)[stratum]
    together["estimate"] = _ratios(ratio[rest], table.duration[rest], rules)
    return by_stratum, Pooled(**together)


def _by_cell(
    values: NDArray[np.float64],
    cell: NDArray[np.int64],
    cells: int,
    rules: Rules,
    *,
    spread: bool,
) -> tuple[list[Bins | None], Bins | None]:
    """Return the distribution in each cell that can tell one, and that of all others together."""
    published = rules.published(np.isfinite(values), cell, cells)
    own = [
        rules.distribution(values[cell == number], spread=spread) if is_published else None
        for number, is_published in enumerate(published)
    ]
    return own, rules.distribution(values[~np.array(published)[cell]], spread=spread)


def _ratios(ratio: NDArray[np.float64], duration: NDArray[np.float64], rules: Rules) -> list[Bins]:
    """Return ratios of estimate to run time in equal parts of the jobs, shortest first."""
    known = np.isfinite(ratio)
    parts = min(_ESTIMATE_PARTS, int(known.sum()) // rules.min_count)
    if parts == 0:
        return []
    # Where few are unknown they are counted with the last part.
    few = rules.hides(int((~known).sum()))
    order = np.argsort(duration, kind="stable")
    ordered = ratio[order][known[order]]
    pieces = np.array_split(ordered, parts)
    if few:
        pieces[-1] = np.append(pieces[-1], ratio[~known])
    found = [rules.distribution(piece) for piece in pieces]
    return [bins for bins in found if bins is not None]


_MAX_BINS = 1000


def fit(
    trace: Any,
    *,
    seed: int = 0,
    min_count: int = 5,
    bins: int = 32,
    keep_workloads: bool = False,
    keep_gpu_types: bool = False,
) -> Twin:
    """Return a private twin of a trace.

    Args:
        trace: a `Trace`, or anything that `windtunnel.schema.as_jobs` takes.
        seed: deals the generated names; >= 0.
        min_count: no published number rests on fewer jobs than this; >= 2.
        bins: groups that a distribution is put in, where there are enough jobs; 2 to 1000.
        keep_workloads: keep the names of workloads that have ``min_count`` jobs.
        keep_gpu_types: keep the names of GPU types likewise; by default they are renamed, too.

    Returns:
        The twin. What the schema does not know (extra columns but ``restore_time``), the cluster
        and the trace's name and notes are not in it.

    Raises:
        SpecError: an option is out of range, or there are fewer than ``2 * min_count`` jobs, or
            fewer than ``min_count`` that have a submit time.
        SchemaError: it is no jobs table.
        SpecError: a ``restore_time`` is no number of seconds; names the row.
    """
    _check(seed, min_count, bins)
    known = trace.metadata if isinstance(trace, Trace) else None
    jobs = trace.jobs if isinstance(trace, Trace) else as_jobs(trace)
    table = columns_of(jobs)
    submitted = int(np.isfinite(table.submit).sum())
    if len(table) < 2 * min_count or submitted < min_count:
        raise SpecError(
            "min_count",
            f"the trace has {len(table):,} jobs, {submitted:,} of them with a submit time: too few "
            f"to hide each among {min_count} (it takes {2 * min_count} jobs). No twin is made.",
        )
    rules = Rules(min_count, bins)
    rng = np.random.Generator(np.random.PCG64(seed))
    strata = strata_of(
        table.codes["workload"], len(table.values["workload"]), table.num_gpus, min_count
    )
    names = _workload_names(table.values["workload"], rng, keep=keep_workloads)
    endings, ended, ending_of_job = _endings(table, strata, min_count)
    cells = (ending_of_job, [*(ending.name for ending in endings), "rest"])
    numbers, pooled = fit_numbers(table, strata.index, len(strata.gpus), cells, rules)
    users, user_class = fit_users(table, min_count)
    arrivals, by_day = _arrivals(table, strata, known, rules)
    templates, template_spread = _templates(table, rules)
    return Twin(
        format=FORMAT,
        min_count=min_count,
        jobs=len(table),
        endings=endings,
        strata=[
            _stratum(
                table,
                strata,
                number,
                rules,
                workload=names[strata.workload[number]],
                days=by_day[number],
                **numbers[number],
            )
            for number in range(len(strata.gpus))
        ],
        ended=ended,
        known=fit_known(table, strata, rules),
        names={
            "gpu_type": fit_names(table, strata, "gpu_type", rules, rng, keep=keep_gpu_types),
            "vc": fit_names(table, strata, "vc", rules, rng),
            "user_class": fit_classes(table, strata, user_class, len(users), rules),
        },
        arrivals=arrivals,
        pooled=pooled,
        users=users,
        users_keep_vc=keep_vc(table),
        templates=templates,
        template_spread=template_spread,
        whole=[name for name in SCALED if _is_whole(getattr(table, name), min_count)],
        kept=["workload"] * keep_workloads + ["gpu_type"] * keep_gpu_types,
    )


def _check(seed: int, min_count: int, bins: int) -> None:
    checked_count("seed", seed, least=0, most=math.inf)
    checked_count("min_count", min_count, least=LEAST_COUNT)
    checked_count("bins", bins, f"a whole number >= 2 and <= {_MAX_BINS}", least=2, most=_MAX_BINS)


def _workload_names(
    values: list[str], rng: np.random.Generator, *, keep: bool
) -> dict[int, str | None]:
    """Return what each workload code is called in the twin."""
    called = values if keep else dealt_names("workload", len(values), rng)
    return {-1: None, len(values): other_than(called), **dict(enumerate(called))}


def _endings(
    table: Columns, strata: Strata, min_count: int
) -> tuple[list[Ending], Split, NDArray[np.int64]]:
    """Return the endings, jobs by stratum and ending, and each job's ending in this table.

    The last is the number of the ending under which the job is counted in its stratum, or the
    number of endings where it is of the stratum's rest; shape (jobs,).
    """
    status, has = table.codes["status"], table.has
    for bits, values in ((0b0010, table.wait), (0b1100, table.duration)):
        # Of times that too few jobs know nothing can be published.
        has = has if int(np.isfinite(values).sum()) >= min_count else has & ~bits
    pairs, code = np.unique(np.stack([status, has]), axis=1, return_inverse=True)
    code = code.reshape(-1)
    split, counted_as = fit_split(strata.index, code, (len(strata.gpus), pairs.shape[1]), min_count)
    used = np.flatnonzero(split.totals())
    endings: list[Ending] = []
    for place in used.tolist():
        word = table.values["status"][pairs[0, place]] if pairs[0, place] >= 0 else None
        times = [time for bit, time in enumerate(TIMES) if pairs[1, place] >> bit & 1]
        alike = sum(ending.status == word for ending in endings)
        name = (word or "none") + f"-{alike + 1}" * bool(alike)
        endings.append(Ending(name, times, word))
    listed = np.array(split.listed, dtype=np.int64).reshape(-1, pairs.shape[1])[:, used]
    renumbered = np.full(pairs.shape[1] + 1, len(used), dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    return (
        endings,
        Split(listed.tolist(), np.array(split.rest)[used].tolist()),
        renumbered[counted_as],
    )


def _stratum(table: Columns, strata: Strata, number: int, rules: Rules, **fitted: Any) -> Stratum:
    """Return a stratum; ``fitted`` are the attributes that rest on more than its jobs."""
    inside = np.flatnonzero(strata.index == number)
    return Stratum(
        gpus=class_name(strata.gpus[number]),
        jobs=len(inside),
        sizes=fit_sizes(
            table.num_gpus[inside],
            table.num_tasks[inside],
            min_count=rules.min_count,
            bins=rules.bins,
        ),
        gpu_time=rules.total(table.gpu_time[inside]),
        **fitted,
    )


def _is_whole(values: NDArray[np.float64], min_count: int) -> bool:
    known = values[np.isfinite(values)]
    return len(known) >= min_count and bool(np.all(known == np.rint(known)))


def _arrivals(
    table: Columns, strata: Strata, known: TraceMetadata | None, rules: Rules
) -> tuple[Arrivals, list[Runs | None]]:
    """Return how submissions lie in time, and the days of each stratum's."""
    clock = clock_seconds(
        table.submit,
        None if known is None else known.epoch,
        None if known is None else known.zone,
    )
    user, vc = table.codes["user"], table.codes["vc"]
    who = np.where(user >= 0, len(table.values["vc"]) + 1 + user, vc + 1)
    key = who * len(strata.gpus) + strata.index
    return fit_arrivals(clock, key, table.gpu_time, (strata.index, len(strata.gpus)), rules)


def _templates(table: Columns, rules: Rules) -> tuple[Any, float]:
    """Return the runs of templates, and how far run times of one template differ (ln)."""
    code = table.codes["template"]
    known = code >= 0
    sizes = np.unique(code[known], return_counts=True)[1]
    unknown = int((~known).sum())
    if len(sizes) and rules.hides(unknown):  # these have one in the twin
        sizes = np.append(sizes, np.ones(unknown, dtype=np.int64))
    groups = fit_groups(sizes, min_count=rules.min_count, bins=rules.bins)
    timed = known & (np.nan_to_num(table.duration, nan=0.0) > 0)
    logs, codes = np.log(table.duration[timed]), code[timed]
    runs = np.bincount(codes, minlength=1)
    repeated = runs[codes] > 1
    if groups is None or int(repeated.sum()) < rules.min_count:
        return groups, 0.0
    mean = np.bincount(codes, logs) / np.maximum(runs, 1)
    freedom = float((runs[runs > 1] - 1).sum())
    spread = np.sqrt(((logs - mean[codes])[repeated] ** 2).sum() / freedom)
    return groups, rounded(float(spread))
