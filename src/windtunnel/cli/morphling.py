"""``windtunnel morphling``: schedulers of reconfigurable jobs, compared as its paper does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import listed, option
from windtunnel.cli.presenting import command_line, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.study.elastic_comparison import ElasticComparison


@click.group(short_help="Reconfigurable jobs: Morphling, its rivals and ablations.")
def morphling() -> None:
    """Schedulers that change GPUs, cores and execution plans of running jobs (MLSys'25)."""


@morphling.command(short_help="All schedulers on Morphling's workloads, in one table.")
@option(
    "--traces NAMES",
    "Workloads, joined by commas: base, bp, mt, naive; or other traces.",
    default="base,bp,mt",
)
@option(
    "--policies NAMES",
    "Elastic policies, joined by commas.  [default: all that come with windtunnel]",
)
@option("--penalties SECONDS", "What a launch or change costs, joined by commas.", default="260,0")
@option("--cluster SPEC", "8x8:A800, FILE.toml or a published cluster's name.", default="morphling")
@option(
    "--out DIR",
    "Write the table and the charts there: comparison and a time-line a policy.",
    click.Path(path_type=Path, file_okay=False),
)
@presented()
def compare(
    *, traces: str, policies: str | None, penalties: str, cluster: str, out: Path | None
) -> Result:
    """Fly every workload under every scheduler, with each penalty."""
    from windtunnel.study.elastic_comparison import SCHEDULERS, compare_elastic

    names = [_trace(word) for word in listed(traces)]
    chosen = SCHEDULERS if policies is None else tuple(listed(policies))
    seconds = _seconds(penalties)
    _check(names, chosen, out)
    total = len(names) * len(chosen) * len(seconds)
    with progress("Flying", total) as done:
        found = compare_elastic(names, chosen, seconds, cluster=cluster, on_done=done)
    result = _result(found)
    written = [] if out is None else [str(path) for path in _write(found, result, out)]
    return replace(result, wrote=written, data={**result.data, "out": written})


def _trace(word: str) -> str:
    """Return a trace's name: ``base`` is ``morphling:base``."""
    return f"morphling:{word}" if word in {"base", "bp", "mt", "naive"} else word


def _seconds(text: str) -> list[float]:
    """Return the penalties."""
    try:
        found = [float(word) for word in listed(text)]
    except ValueError:
        found = []
    if not found or not all(0 <= value < float("inf") for value in found):
        raise SpecError("--penalties", f"found {quote(text)}; expected such as 260,0.")
    return list(dict.fromkeys(found))


def _check(traces: list[str], policies: tuple[str, ...], out: Path | None) -> None:
    """Check what can be checked before anything is flown."""
    from windtunnel.policies import resolve_policy

    for name, words in (("--traces", tuple(traces)), ("--policies", policies)):
        if not words or len(set(words)) < len(words):
            raise SpecError(name, f"found {', '.join(words)}; expected at least one, each once.")
    for word in policies:
        if not resolve_policy(word).elastic:
            message = f"policy {quote(word)} resizes no jobs; `windtunnel compare` takes it."
            raise SpecError("--policies", message)
    if out is not None and not out.parent.is_dir():
        raise SpecError("--out", f"expected a folder in one that exists; found {quote(str(out))}.")


def _write(found: ElasticComparison, result: Result, out: Path) -> list[Path]:
    """Write table and charts; return the files."""
    import json

    from windtunnel.report.chart.saving import write_chart
    from windtunnel.report.elastic_charts import timeline_chart
    from windtunnel.report.result_page import result_page, write_page
    from windtunnel.storage import replacing

    out.mkdir(exist_ok=True)
    written = [out / "comparison.json", out / "comparison.html"]
    with replacing(written[0]) as target:
        target.write_text(json.dumps(found.rows(), indent=1), encoding="utf-8")
    write_page(written[1], result_page(result, command=command_line()))
    for (trace, policy, penalty), outcome in found.outcomes.items():
        if penalty == max(key[2] for key in found.outcomes):
            name = f"gpus-{trace}-{policy}".replace(":", "-").replace("/", "-")
            written.append(out / f"{name}.html")
            write_chart(written[-1], timeline_chart(outcome), f"{trace}, {policy}")
    return written


def _result(found: ElasticComparison) -> Result:
    from windtunnel.report.elastic_charts import comparison_chart

    rows = found.rows()
    headings = ["scheduler", "mean JCT, s", "P50", "P99", "last end", "guaranteed", "changes a job"]
    times = ("avg_jct", "p50_jct", "p99_jct", "last_end", "avg_jct_guaranteed")
    tables = []
    for trace, penalty in dict.fromkeys((row["trace"], row["penalty"]) for row in rows):
        shown = [
            [
                row["policy"],
                *(_number(row[key]) for key in times),
                f"{row['reconfigurations_per_job']:.3f}",
            ]
            for row in rows
            if (row["trace"], row["penalty"]) == (trace, penalty)
        ]
        tables.append((f"{trace}, {penalty:g} s a launch or change", table_of(headings, shown)))
    title = "Schedulers of reconfigurable jobs"
    return Result(
        title=title,
        parts=[Part(title, tables=tables)],
        chart=lambda: comparison_chart(found),
        data={"runs": rows},
    )


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}"
