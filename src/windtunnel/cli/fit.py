"""``windtunnel fit``: a private twin of a trace, and how like it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.opening import TraceRequest, check_out, open_request
from windtunnel.cli.options import flag, option, out_option, seed_option, trace_options
from windtunnel.cli.presenting import presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import count
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.traces.twin.twin import Twin

_TOML, _JSON = ".toml", ".twin.json"


@click.command(short_help="Learn a private twin of a trace: its statistics, without its names.")
@trace_options
@out_option("FILE", "Where to write the twin: NAME.twin.toml or NAME.twin.json.  [required]")
@option(
    "--min-count K", "No published number rests on fewer jobs.", click.IntRange(min=2), default=5
)
@option(
    "--bins N",
    "Groups of jobs in which a distribution is kept.",
    click.IntRange(min=2, max=1000),
    default=32,
)
@flag("--keep-workloads", "Keep the names of workloads.")
@flag("--keep-gpu-types", "Keep the names of GPU types.")
@seed_option("Deals the generated names; seed of a synthetic trace, too.  [default: 0]")
@presented()
def fit(
    *,
    trace: str,
    out: Path | None,
    min_count: int,
    bins: int,
    keep_workloads: bool,
    keep_gpu_types: bool,
    **asked: Any,
) -> Result:
    """Learn the statistics of TRACE, write them to a file, and show how like a twin is.

    The file holds no id, no name, no date and no single job's numbers: every number in it rests on
    at least K jobs. Where TRACE has too few jobs for that, nothing is written. The twin is opened
    like any trace: windtunnel simulate NAME.twin.toml --cluster ...
    """
    from windtunnel.traces.twin.fidelity import fidelity
    from windtunnel.traces.twin.fit import fit as learn

    target = _checked(out, trace)
    opened = open_request(TraceRequest(trace, **asked))
    seed = asked["seed"] or 0

    def learnt(jobs: pa.Table) -> Twin:
        return learn(
            opened.with_jobs(jobs),
            seed=seed,
            min_count=min_count,
            bins=bins,
            keep_workloads=keep_workloads,
            keep_gpu_types=keep_gpu_types,
        )

    with progress("Learning"):
        twin = learnt(opened.jobs)
        rows = fidelity(opened.jobs, twin.generate(seed=seed).jobs).to_pylist()
    with progress("Judging"):
        judged = _judged(opened.jobs, lambda jobs: learnt(jobs).generate(seed=seed).jobs, seed)
    twin.save(target)
    return _result(twin, target, rows, judged)


def _judged(
    jobs: pa.Table, twin_of: Callable[[pa.Table], pa.Table], seed: int
) -> list[dict[str, Any]]:
    """Return how like rows held back a twin of the others is; nothing where they are too few."""
    from windtunnel.study.likeness import likeness

    try:
        return likeness(jobs, twin_of, seed)
    except SpecError:
        return []


def _checked(out: Path | None, trace: str) -> Path:
    """Return where to write."""
    if out is None:
        raise SpecError("--out", "expected a file to write, such as NAME.twin.toml.")
    check_out(out, (_TOML, ".json"), trace)
    if out.suffix.lower() == ".json" and not out.name.lower().endswith(_JSON):
        raise SpecError(
            f"--out {out}",
            f"expected the ending {_JSON}, by which a twin in JSON is known; "
            f"call it {quote(out.stem + _JSON)}.",
        )
    return out


def _facts(twin: Twin, out: Path) -> dict[str, Any]:
    """Return what was written, as plain data."""
    return {
        "out": str(out),
        "bytes": out.stat().st_size,
        "jobs": twin.jobs,
        "min_count": twin.min_count,
        "strata": len(twin.strata),
        "users": sum(people.users for people in twin.users),
        "kept": list(twin.kept),
    }


def _result(
    twin: Twin, out: Path, rows: list[dict[str, Any]], judged: list[dict[str, Any]]
) -> Result:
    facts = _facts(twin, out)
    cells = [
        (row["measure"], _cell(row["source"], row["unit"]), _cell(row["twin"], row["unit"]))
        for row in rows
    ]
    likeness = "How like the source a twin is"
    return Result(
        title=f"A twin of {count(twin.jobs)} jobs",
        parts=[
            Part(likeness, tables=[(likeness, table_of(("measure", "source", "twin"), cells))]),
            _judgement(judged),
            Part("What is in the file", points=_contents(twin)),
        ],
        settings=[
            ("written to", facts["out"]),
            ("size", f"{count(facts['bytes'])} bytes"),
            ("strata", f"{count(len(twin.strata))} of workload and GPU count"),
            ("smallest group", f"{count(twin.min_count)} jobs"),
        ],
        wrote=[f"Next: windtunnel simulate {out} --cluster 64x8:A100 --policy fifo"],
        data={**facts, "fidelity": rows, "judged": judged},
    )


def _judgement(rows: list[dict[str, Any]]) -> Part:
    """Return how like rows that it has not seen a twin is, beside its rivals."""
    from windtunnel.study.likeness import JUDGED, LEAST

    title = "How like jobs that it has not seen"
    if not rows:
        return Part(title, points=(f"Not judged: that takes {LEAST} jobs, a quarter held back.",))
    cells = [
        (row["measure"], *("" if row[who] is None else f"{row[who]:.3f}" for who in JUDGED))
        for row in rows
    ]
    rivals = JUDGED[:-1]
    near = [min(rivals, key=lambda who: math.inf if row[who] is None else row[who]) for row in rows]
    wins = ", ".join(f"{who} {near.count(who)}" for who in rivals)
    point = (
        f"Nearest, of {len(rows)} measures: {wins}. Distances, 0 to 1, from the last quarter of "
        "the jobs: of a twin of the others, of their columns resampled by themselves, of a "
        "Gaussian copula of them, and of these others themselves (log), which nothing learnt from "
        "them can be expected to beat."
    )
    return Part(title, tables=[(title, table_of(("measure", *JUDGED), cells))], points=(point,))


def _contents(twin: Twin) -> tuple[str, ...]:
    """Return what leaves and what does not, in sentences."""
    kept = " and ".join(name.replace("_", " ") for name in twin.kept)
    names = f"names but those of {kept}" if kept else "names of workloads and GPU types"
    return (
        (
            "Counts of jobs and means over groups of jobs, by workload and GPU count: sizes, run "
            "times, waits, states, requests; jobs by day and by hour of the week; how unequal "
            "users, virtual clusters and templates are."
        ),
        f"Not in it: ids, users, virtual clusters, templates, dates, single jobs, {names}.",
        (
            f"It hides each job among {twin.min_count}; it is not differential privacy: look "
            "through the file before you share it."
        ),
    )


def _cell(value: float | None, unit: str) -> str:
    from windtunnel.report import format as texts

    write: dict[str, Callable[[float | None], str]] = {
        "jobs": texts.count,
        "s": texts.duration,
        "GPU s": texts.gpu_time,
        "share": texts.percent,
        "distance": lambda number: "" if number is None else f"{number:.4f}",
    }
    return write.get(unit, texts.number)(value)
