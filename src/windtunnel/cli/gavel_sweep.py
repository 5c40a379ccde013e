"""``windtunnel gavel sweep|makespan|timeline``: Gavel's headline experiments, to be run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import OneOf, out_option, output_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

_ENDINGS = (".html", ".svg", ".csv", ".parquet")
_OUT = "Write the chart (.html, .svg) or the runs' numbers (.csv, .parquet)."


class Numbers(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """Numbers joined by commas."""

    name = "numbers"

    def __init__(self, kind: Callable[[str], float]) -> None:
        self._kind = kind

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers.

        Raises:
            click.BadParameter: one is no number.
        """
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(self._kind(word) for word in str(value).split(",") if word.strip())
        except ValueError:
            found = ()
        if not found:
            self.fail(f"found {value!a}; expected numbers joined by commas.", param, ctx)
        return found


def _shared(command: Any) -> Any:
    """Add the options of all sweeps."""
    for add in (
        click.option(
            "--compat",
            type=OneOf("gavel"),
            metavar="gavel",
            help="The published round mechanism, to compare with what was published.",
        ),
        click.option(
            "--throughputs",
            metavar="FILE.json",
            help="Measured speeds, with pairs for policies that share GPUs.  "
            "[default: the published ones, without pairs]",
        ),
        click.option(
            "--seeds",
            type=Numbers(int),
            default="0",
            show_default=True,
            metavar="N,...",
            help="Seeds of workloads and policies: a run each.",
        ),
        click.option(
            "--cluster",
            default="v100:36,p100:36,k80:36",
            show_default=True,
            metavar="SPEC",
            help="Where.",
        ),
    ):
        command = add(command)
    return command


@click.command(short_help="Completion time against input rate, beside the published.")
@click.option(
    "--policies",
    default="max_min_fairness,fifo_perf,max_min_fairness_perf",
    show_default=True,
    metavar="NAMES",
    help="Published names, without gavel:.",
)
@click.option(
    "--rates", type=Numbers(float), default="4", show_default=True, metavar="R,...",
    help="Jobs per hour.",
)  # fmt: skip
@click.option("--multi-gpu", is_flag=True, help="Gangs of 1, 2, 4 and 8 GPUs.")
@click.option("--priorities", is_flag=True, help="A fifth of the jobs has weight 5.")
@click.option(
    "--measure",
    default="4000:5000",
    show_default=True,
    metavar="FIRST:LAST",
    help="The jobs, by arrival, that are measured.",
)
@_shared
@out_option("FILE", _OUT)
@output_options
def sweep(
    *, policies: str, rates: tuple[float, ...], out: Path | None, as_json: bool, **asked: Any
) -> None:
    """Draw streams of jobs as Gavel's authors did, and run them under policies at input rates.

    What is told is the mean completion time of the jobs measured, in hours, beside the published
    one where there is one; with gangs and --seeds 0,1,2 the published mean of those seeds. A run
    of a policy that does not keep up is given up.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.study.gavel_published import published_jct
    from windtunnel.study.gavel_sweep import SweepOptions, rate_sweep

    check_out(out, _ENDINGS, "")
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
    with progress("Running", total, show=shows_progress(as_json=as_json)) as done:
        table = rate_sweep(names, rates, asked["seeds"], options, on_done=done)
    alike = _is_published(options.cluster) and (first, last) == (4000, 5000)
    means = set(asked["seeds"]) == {0, 1, 2}
    published = published_jct(multi_gpu=options.multi_gpu, means=means) if alike else {}
    wording = ("rate", "avg_jct", "Input rate, jobs per hour", "Mean completion time")
    _tell(table, published, wording, out, as_json=as_json)


@click.command(short_help="Makespan of jobs that are all there at once, beside the published.")
@click.option(
    "--policies",
    default="fifo_perf,min_total_duration_perf",
    show_default=True,
    metavar="NAMES",
    help="Published names, without gavel:.",
)
@click.option(
    "--counts", type=Numbers(int), default="100", show_default=True, metavar="N,...",
    help="Numbers of jobs.",
)  # fmt: skip
@_shared
@out_option("FILE", _OUT)
@output_options
def makespan(
    *, policies: str, counts: tuple[int, ...], out: Path | None, as_json: bool, **asked: Any
) -> None:
    """Run jobs of 1 to 8 GPUs that are all there at the start; when is the last one done?"""
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.study.gavel_published import published_makespan
    from windtunnel.study.gavel_sweep import SweepOptions, makespan_sweep

    check_out(out, _ENDINGS, "")
    names = _names(policies)
    options = SweepOptions(
        cluster=asked["cluster"],
        multi_gpu=True,
        compat=asked["compat"],
        throughputs=asked["throughputs"],
    )
    total = len(names) * len(counts) * len(asked["seeds"])
    with progress("Running", total, show=shows_progress(as_json=as_json)) as done:
        table = makespan_sweep(names, counts, asked["seeds"], options, on_done=done)
    wording = ("jobs", "makespan", "Jobs", "Makespan")
    published = published_makespan() if _is_published(options.cluster) else {}
    _tell(table, published, wording, out, as_json=as_json)


@click.command(short_help="Shares of entities over time under a hierarchical policy.")
@click.option(
    "--weights", type=Numbers(float), default="1,2,3", show_default=True, metavar="W,...",
    help="Weights of the entities, whose jobs come one entity after the other.",
)  # fmt: skip
@click.option(
    "--hours", type=click.FloatRange(min=1, max=10_000), default=24.0, show_default=True,
    help="For how long.",
)  # fmt: skip
@click.option(
    "--cluster", default="v100:3,p100:3,k80:3", show_default=True, metavar="SPEC", help="Where."
)
@out_option("FILE", _OUT)
@output_options
def timeline(
    *, weights: tuple[float, ...], hours: float, cluster: str, out: Path | None, as_json: bool
) -> None:
    """Let the jobs of weighted entities come one after another, and show what each has."""
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.saving import save
    from windtunnel.report.gavel_charts import timeline_chart
    from windtunnel.study.gavel_sweep import entity_timeline

    check_out(out, _ENDINGS, "")
    table = entity_timeline(weights=weights, hours=hours, cluster=cluster)
    if out is not None:
        title = "Throughput of entities over time"
        save(out, lambda: table, lambda: timeline_chart(table), title)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({"rows": table.to_pylist(), "out": None if out is None else str(out)})
        return
    from windtunnel.cli.screen import plain_table, screen

    rows = [
        [str(row["hour"]), row["entity"], f"{row['weight']:g}", f"{row['gpus']:.2f}",
         f"{row['throughput']:.3f}", f"{row['share']:.1%}"]
        for row in table.to_pylist()
    ]  # fmt: skip
    headings = ["hour", "entity", "weight", "GPUs", "throughput", "share"]
    screen().print(plain_table(headings, rows, numbers=4))


def _names(text: str) -> list[str]:
    """Return the policies, checked before anything is run.

    Raises:
        SpecError: an unknown name, none, or one twice.
    """
    from windtunnel.errors import SpecError
    from windtunnel.policies.gavel.in_rounds import PREFIX, gavel_policy

    names = [name.strip().removeprefix(PREFIX) for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise SpecError("--policies", f"found {names}; expected at least one, each once.")
    for name in names:
        gavel_policy(PREFIX + name)
    return names


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
    """Return the first job measured, and the first after them that is not.

    Raises:
        SpecError: it is no such pair.
    """
    from windtunnel.errors import SpecError, quote

    first, colon, last = text.partition(":")
    if not colon or not first.isdecimal() or not last.isdecimal() or int(first) >= int(last):
        raise SpecError("--measure", f"found {quote(text)}; expected FIRST:LAST, as in 4000:5000.")
    return int(first), int(last)


def _tell(
    table: pa.Table,
    published: dict[str, dict[float, float]],
    wording: tuple[str, str, str, str],
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Write and print a sweep; ``wording``: axis, measure, titles of both."""
    from windtunnel.cli.saving import save
    from windtunnel.report.gavel_charts import curve_rows, sweep_chart
    from windtunnel.study.gavel_published import NAMES, NOT_REPRODUCIBLE

    axis, measure, x, y = wording
    if out is not None:
        named = {NAMES.get(name, name): values for name, values in published.items()}
        chart = sweep_chart(curve_rows(table, axis, measure, NAMES), named, x, y)
        save(out, lambda: table, lambda: chart, f"Gavel: {y.lower()}")
    rows = curve_rows(table, axis, measure, {})
    for row in rows:
        row["published"] = published.get(row["policy"], {}).get(row["at"])
    if as_json:
        from windtunnel.cli.machine import print_json

        told = {"runs": table.to_pylist(), "hours": rows, "out": None if out is None else str(out)}
        print_json(told)
        return
    from windtunnel.cli.screen import bullets, heading, plain_table, screen

    console = screen()
    cells = [
        [row["policy"], f"{row['at']:g}", str(row["n"]), f"{row['hours']:.2f}",
         f"{row['low']:.2f}-{row['high']:.2f}",
         "" if row["published"] is None else f"{row['published']:.2f}"]
        for row in rows
    ]  # fmt: skip
    headings = ["policy", axis, "seeds", "hours", "spread", "published"]
    heading(console, f"{y}, hours; {x[0].lower()}{x[1:]}")
    console.print(plain_table(headings, cells, numbers=5))
    notes = ["The published figures may come from other seeds of the workload."] * bool(published)
    if any(row["policy"] in NOT_REPRODUCIBLE for row in rows):
        notes.append("The published FIFO column is not reproducible: compare its shape only.")
    if len(rows) < len({(r["policy"], r[axis]) for r in table.to_pylist()}):
        notes.append("Where a policy did not keep up with the rate the run was given up.")
    bullets(console, "Mind", notes)
