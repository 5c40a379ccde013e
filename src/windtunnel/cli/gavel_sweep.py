"""``windtunnel gavel sweep|makespan|timeline``: Gavel's headline experiments, to be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Parsed, flag, listed, one_of, option, together
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import plural
from windtunnel.report.result import Drawing, Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.report.sections import Table

_ENDINGS = (*CHARTS, *TABLES)
_OUT = "Write the chart (.html, .svg, .png, .pdf) or the runs' numbers (.csv, .parquet)."


def _numbers(kind: Callable[[str], float]) -> Parsed:
    """Return the type of numbers joined by commas."""

    def parse(text: str) -> tuple[float, ...]:
        try:
            found = tuple(kind(word) for word in listed(text))
        except ValueError:
            found = ()
        if not found:
            raise ValueError(f"found {text!a}; expected numbers joined by commas.")
        return found

    return Parsed("numbers", parse)


#: Add the options of all sweeps.
_shared = together(
    option("--cluster SPEC", "Where.", default="v100:36,p100:36,k80:36"),
    option(
        "--seeds N,...", "Seeds of workloads and policies: a run each.", _numbers(int), default="0"
    ),
    option(
        "--throughputs FILE.json",
        "Measured speeds, with pairs for policies that share GPUs.  "
        "[default: the published ones, without pairs]",
    ),
    option(
        "--compat gavel",
        "The published round mechanism, to compare with what was published.",
        one_of("gavel"),
    ),
    option(
        "--runs FILE.jsonl",
        "Keep each run here once it is done, and fly none that is here already.",
    ),
)


@click.command(short_help="Completion time against input rate, beside the published.")
@option(
    "--policies NAMES",
    "Published names, without gavel:.",
    default="max_min_fairness,fifo_perf,max_min_fairness_perf",
)
@option("--rates R,...", "Jobs per hour.", _numbers(float), default="4")
@flag("--multi-gpu", "Gangs of 1, 2, 4 and 8 GPUs.")
@flag("--priorities", "A fifth of the jobs has weight 5.")
@option("--measure FIRST:LAST", "The jobs, by arrival, that are measured.", default="4000:5000")
@_shared
@presented(_ENDINGS, _OUT)
def sweep(*, policies: str, rates: tuple[float, ...], **asked: Any) -> Result:
    """Draw streams of jobs as Gavel's authors did, and run them under policies at input rates.

    The result is the mean completion time of the jobs measured, in hours, beside the published
    one where there is one; with gangs and --seeds 0,1,2 the published mean of those seeds. A run
    of a policy that does not keep up is given up.
    """
    from windtunnel.study.gavel_factors import published_jct
    from windtunnel.study.gavel_sweep import SweepOptions, rate_sweep

    names = _names(policies)
    first, last = _window(asked["measure"])
    options = SweepOptions(
        cluster=asked["cluster"],
        multi_gpu=asked["multi_gpu"],
        priorities=asked["priorities"],
        compat=asked["compat"],
        throughputs=asked["throughputs"],
        first=first,
        last=last,
    )
    total = len(names) * len(rates) * len(asked["seeds"])
    with progress("Running", total) as done:
        table = rate_sweep(names, rates, asked["seeds"], options, on_done=done, kept=asked["runs"])
    alike = _is_published(options.cluster) and (first, last) == (4000, 5000)
    means = set(asked["seeds"]) == {0, 1, 2}
    published = published_jct(multi_gpu=options.multi_gpu, means=means) if alike else {}
    wording = ("rate", "avg_jct", "Input rate, jobs per hour", "Mean completion time")
    settings = _settings(asked, ("measured", f"jobs {first} to {last - 1}, by arrival"))
    return _swept(table, published, wording, settings)


@click.command(short_help="Makespan of jobs that are all there at once, beside the published.")
@option(
    "--policies NAMES",
    "Published names, without gavel:.",
    default="fifo_perf,min_total_duration_perf",
)
@option("--counts N,...", "Numbers of jobs.", _numbers(int), default="100")
@_shared
@presented(_ENDINGS, _OUT)
def makespan(*, policies: str, counts: tuple[int, ...], **asked: Any) -> Result:
    """Run jobs of 1 to 8 GPUs that are all there at the start; when is the last one done?"""
    from windtunnel.study.gavel_factors import published_makespan
    from windtunnel.study.gavel_sweep import SweepOptions, makespan_sweep

    names = _names(policies)
    options = SweepOptions(
        cluster=asked["cluster"],
        multi_gpu=True,
        compat=asked["compat"],
        throughputs=asked["throughputs"],
    )
    total = len(names) * len(counts) * len(asked["seeds"])
    with progress("Running", total) as done:
        table = makespan_sweep(
            names, counts, asked["seeds"], options, on_done=done, kept=asked["runs"]
        )
    wording = ("jobs", "makespan", "Jobs", "Makespan")
    published = published_makespan() if _is_published(options.cluster) else {}
    return _swept(table, published, wording, _settings(asked))


@click.command(short_help="Shares of entities over time under a hierarchical policy.")
@option(
    "--weights W,...",
    "Weights of the entities, whose jobs come one entity after the other.",
    _numbers(float),
    default="1,2,3",
)
@option("--hours", "For how long.", click.FloatRange(min=1, max=10_000), default=24.0)
@option("--cluster SPEC", "Where.", default="v100:3,p100:3,k80:3")
@presented(_ENDINGS, _OUT)
def timeline(*, weights: tuple[float, ...], hours: float, cluster: str) -> Result:
    """Let the jobs of weighted entities come one after another, and show what each has."""
    from windtunnel.report.gavel_charts import timeline_chart
    from windtunnel.study.gavel_sweep import entity_timeline

    table = entity_timeline(weights=weights, hours=hours, cluster=cluster)
    rows = [
        (
            *(str(row["hour"]), row["entity"], f"{row['weight']:g}", f"{row['gpus']:.2f}"),
            *(f"{row['throughput']:.3f}", f"{row['share']:.1%}"),
        )
        for row in table.to_pylist()
    ]
    headings = ("hour", "entity", "weight", "GPUs", "throughput", "share")
    return Result(
        "Throughput of entities over time",
        parts=[Part("", tables=[("", table_of(headings, rows, texts=1))])],
        data={"rows": table.to_pylist()},
        table=lambda: table,
        chart=lambda: timeline_chart(table),
    )


def _settings(asked: dict[str, Any], *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Return how a sweep was flown."""
    return [
        ("cluster", asked["cluster"]),
        ("seeds", ", ".join(map(str, asked["seeds"]))),
        ("mechanism", "as published" if asked["compat"] else "ours"),
        ("throughputs", asked["throughputs"] or "as published, without pairs"),
        *more,
    ]


def _names(text: str) -> list[str]:
    """Return the policies, checked before anything is run.

    One that does not know speeds is flown with each choice among equally good shares, as solvers
    differ in it.
    """
    from windtunnel.policies.gavel.catalogue import POLICIES
    from windtunnel.policies.gavel.in_rounds import CHOICES, PREFIX, GavelPolicy

    names = [name.removeprefix(PREFIX) for name in listed(text)]
    if not names or len(set(names)) < len(names):
        raise SpecError("--policies", f"found {names}; expected at least one, each once.")
    found = []
    for name in names:
        policy = GavelPolicy.of(PREFIX + name)
        open_to = POLICIES[policy.allocation].leaves_open and not policy.choice
        found += [f"{name}:choice={choice}" for choice in CHOICES if choice] if open_to else [name]
    return found


def _is_published(cluster: str) -> bool:
    """Return whether a cluster is that of the published experiments."""
    from windtunnel.cluster.parse import parse_cluster
    from windtunnel.study.gavel_sweep import CLUSTER

    sizes = [
        sorted((node.gpu_type, node.count * node.gpus) for node in parse_cluster(text).node_types)
        for text in (cluster, CLUSTER)
    ]
    return sizes[0] == sizes[1]


def _window(text: str) -> tuple[int, int]:
    """Return the first job measured, and the first after them that is not."""
    first, colon, last = text.partition(":")
    if not colon or not first.isdecimal() or not last.isdecimal() or int(first) >= int(last):
        raise SpecError("--measure", f"found {quote(text)}; expected FIRST:LAST, as in 4000:5000.")
    return int(first), int(last)


def _swept(
    table: pa.Table,
    published: dict[str, dict[float, float]],
    wording: tuple[str, str, str, str],
    settings: list[tuple[str, str]],
) -> Result:
    """Return a sweep; ``wording``: axis, measure, titles of both."""
    from windtunnel.report.gavel_charts import curve_rows, sweep_chart
    from windtunnel.study.gavel_factors import NOT_REPRODUCIBLE

    axis, measure, x, y = wording
    rows = curve_rows(table, axis, measure, {})
    called = {row["policy"]: _called(row["policy"]) for row in rows}
    known = {policy: published.get(base, {}) for policy, (base, _) in called.items()}
    for row in rows:
        row["published"] = known[row["policy"]].get(row["at"])
    notes = ["The published figures may come from other seeds of the workload."] * bool(published)
    if any(base in NOT_REPRODUCIBLE for base, _ in called.values()):
        notes.append("The published FIFO column is not reproducible: compare its shape only.")
    if any(":choice=" in policy for policy in called):
        notes.append(
            "Where a policy does not know speeds many shares are equally good: a vertex gives each "
            "job to one type, the centre, as the published solvers, to all."
        )
    if len(rows) < len({(r["policy"], r[axis]) for r in table.to_pylist()}):
        notes.append("Where a policy did not keep up with the rate the run was given up.")
    names = {policy: name for policy, (_, name) in called.items()}

    def draw() -> Any:
        circles = {names[policy]: points for policy, points in known.items()}
        return sweep_chart(curve_rows(table, axis, measure, names), circles, x, y)

    seeds = plural(len({row["seed"] for row in table.to_pylist()}), "seed")
    caption = f"Means of {seeds}; bars from the least to the most; circles are published."
    return Result(
        f"Gavel: {y.lower()}",
        f"Hours; {x[0].lower()}{x[1:]}.",
        parts=[
            Part(
                "",
                tables=[("", _hours(rows, axis))],
                drawings=[Drawing("sweep", y, caption, draw)],
            )
        ],
        cautions=notes,
        settings=settings,
        data={"runs": table.to_pylist(), "hours": rows},
        table=lambda: table,
        chart=draw,
    )


def _called(policy: str) -> tuple[str, str]:
    """Return a policy's published name, and what a figure calls it."""
    from windtunnel.study.gavel_factors import NAMES

    base, _, choice = policy.partition(":choice=")
    return base, NAMES.get(base, base) + (f", {choice}" if choice else "")


def _hours(rows: list[dict[str, Any]], axis: str) -> Table:
    cells = [
        (
            *(row["policy"], f"{row['at']:g}", str(row["n"]), f"{row['hours']:.2f}"),
            f"{row['low']:.2f}-{row['high']:.2f}",
            "" if row["published"] is None else f"{row['published']:.2f}",
        )
        for row in rows
    ]
    return table_of(("policy", axis, "seeds", "hours", "spread", "published"), cells)
