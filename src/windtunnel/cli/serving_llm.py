"""``windtunnel serving llm`` and ``llm-capacity``: continuous batching on recorded requests."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Seconds, out_option, output_options, seed_option
from windtunnel.cli.serving_told import check_ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cli.options import Command
    from windtunnel.serving import LlmModel, LlmOutcome, RequestTrace

_LATENCIES = {"ttft": "TTFT, s", "tpot": "TPOT, s", "e2e": "end to end, s"}
_model_option = click.option(
    "--model",
    metavar="PARAMS.toml[#NAME]",
    help="iteration_s, prefill_token_s, decode_seq_s, kv_token_s, kv_limit, max_batch, gpus.  "
    "[default: a made-up model]",
)
_dispatch_option = click.option(
    "--dispatch",
    default="least_loaded",
    show_default=True,
    metavar="RULE",
    help="Which replica: least_loaded or round_robin.",
)


def _ttft_option(*, required: bool) -> Callable[..., Any]:
    return click.option(
        "--ttft", type=Seconds(), required=required, help="SLO of the time to the first token."
    )


_tpot_option = click.option(
    "--tpot", type=Seconds(), help="SLO of the mean time of each further token."
)


def _trace_options(command: Command) -> Command:
    """Add TRACE and what changes it."""
    for add in (
        seed_option("Of drawn requests.  [default: 0]"),
        click.option("--cv", type=float, default=1.0, help="With --duration: cv of the gaps."),
        click.option(
            "--duration",
            type=Seconds(),
            help="Draw requests for so long, with lengths of TRACE; what files of lengths need.",
        ),
        click.option(
            "--rate",
            type=float,
            metavar="X",
            help="Requests/s: gaps are scaled, or drawn with --duration.  [default: as recorded]",
        ),
        click.argument("trace", metavar="TRACE"),
    ):
        command = add(command)
    return command


@click.command(short_help="Serve a language model with continuous batching.")
@_trace_options
@_model_option
@click.option(
    "--rates",
    metavar="X,Y,...",
    help="Tell goodput at these rates, too.  [default: eight on a page]",
)
@out_option("FILE", "Write a page (.html) or charts (.svg).")
@click.option(
    "--replicas", type=click.IntRange(1, 65536), default=1, show_default=True, help="Replicas."
)
@_ttft_option(required=False)
@_tpot_option
@_dispatch_option
@output_options
def llm(*, trace: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Serve TRACE, such as an Azure LLM, BurstGPT or Mooncake file, on replicas of a model.

    Tells time to first token, time per output token, end-to-end latency, and goodput under the
    SLOs given.
    """
    from windtunnel import serving as rooms

    check_ending(out, (".html", ".svg"))
    requests, model = _read(trace, asked)
    run = rooms.simulate_llm(requests, model, asked["replicas"], asked["dispatch"])
    slo = {name: _slo(asked[name]) for name in ("ttft", "tpot")}
    figures = run.metrics(**slo)
    rates = _rates(asked["rates"], requests) if asked["rates"] or out is not None else []
    by_rate = rooms.goodput_by_rate(
        requests, model, rates, replicas=asked["replicas"], dispatch=asked["dispatch"], **slo
    ) if rates else []  # fmt: skip
    if out is not None:
        _write(run, by_rate, slo, out)
    settings = {name: asked[name] for name in ("replicas", "dispatch", "ttft", "tpot", "rate")}
    if as_json:
        from windtunnel.cli.machine import print_json

        told: dict[str, Any] = {"settings": settings, "model": model.data(), "metrics": figures}
        told["prefix_hits"] = requests.prefix_hits()
        print_json({**told, "by_rate": by_rate, "out": None if out is None else str(out)})
        return
    _tell(figures, asked["replicas"])
    _tell_rates(by_rate)


@click.command("llm-capacity", short_help="How many GPUs a language model needs.")
@_trace_options
@_model_option
@_ttft_option(required=True)
@_tpot_option
@_dispatch_option
@click.option(
    "--max-replicas",
    type=click.IntRange(1, 65536),
    default=1024,
    show_default=True,
    help="Give up beyond.",
)
@output_options
def llm_capacity(*, trace: str, as_json: bool, **asked: Any) -> None:
    """Search the fewest replicas that serve TRACE with a P99 time to the first token <= --ttft.

    --tpot counts in the goodput told, not in the search.
    """
    from windtunnel import serving as rooms
    from windtunnel.cli.screen import progress, shows_progress

    requests, model = _read(trace, asked)
    with progress("Searching", show=shows_progress(as_json=as_json)) as done:
        found = rooms.llm_capacity(
            *(requests, model, asked["ttft"], asked["dispatch"], asked["max_replicas"]),
            on_done=done,
        )
    figures = found.outcome.metrics(asked["ttft"], _slo(asked["tpot"]))
    if as_json:
        from windtunnel.cli.machine import print_json

        tried = [{"replicas": n, "p99_ttft": p99} for n, p99 in sorted(found.tried.items())]
        told = {"replicas": found.replicas, "gpus": found.gpus, "tried": tried}
        print_json({**told, "model": model.data(), "metrics": figures})
        return
    _tell(figures, found.replicas)


def _slo(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _read(trace: str, asked: dict[str, Any]) -> tuple[RequestTrace, LlmModel]:
    from windtunnel import serving as rooms
    from windtunnel.errors import TraceError

    try:
        requests = rooms.read_requests(Path(trace))
    except OSError as error:
        raise TraceError(trace, "a readable file", hint=str(error)) from error
    if isinstance(requests, rooms.MinuteCounts) or not len(requests.prompt_tokens):
        raise TraceError(trace, "requests with prompt and output tokens")
    params = asked["model"]
    model = rooms.synthetic_llm() if params is None else rooms.read_llm_model(params)
    return _at_rate(requests, asked), model


def _at_rate(requests: RequestTrace, asked: dict[str, Any]) -> RequestTrace:
    from windtunnel import serving as rooms

    rate, duration = asked["rate"], asked["duration"]
    if requests.format == "lengths" or duration is not None:
        if rate is None or duration is None:
            raise click.UsageError(
                f"{requests.name}: expected --rate and --duration, to draw requests of its lengths."
            )
        cv = asked["cv"]
        process = rooms.Gamma(rate, cv) if cv else rooms.Deterministic(rate)
        return requests.drawn(process, duration, asked["seed"] or 0)
    return requests if rate is None else requests.at_rate(rate)


def _rates(text: str | None, requests: RequestTrace) -> list[float]:
    """Return the rates asked for; else eight from half of the requests' own to four times it."""
    if text is not None:
        try:
            return [float(word) for word in text.split(",")]
        except ValueError as error:
            raise click.UsageError(f"--rates: found {text!a}; expected numbers 1,2,4.") from error
    span = float(requests.arrival[-1]) if len(requests) else 0.0
    return [len(requests) / span * step / 2 for step in range(1, 9)] if span else []


def _write(
    run: LlmOutcome, by_rate: list[dict[str, Any]], slo: dict[str, float], out: Path
) -> None:
    from windtunnel.cli.serving_told import command_line, replace

    if out.suffix.lower() == ".html":
        from windtunnel.report.llm_page import llm_page

        replace(out, llm_page(run, by_rate, slo, command=command_line()))
    else:
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.llm_charts import llm_chart

        write_chart(out, llm_chart(run, by_rate, slo))


def _tell(figures: dict[str, float | None], replicas: int) -> None:
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.cli.serving_told import cell
    from windtunnel.report.format import plural

    console = screen()
    total, gpus = int(figures["num_requests"] or 0), int(figures["gpus"] or 0)
    words = (plural(total, "request"), plural(replicas, "replica"), plural(gpus, "GPU"))
    heading(console, ", ".join(words))
    rows = [
        [text, *(cell(figures[f"{point}_{name}"]) for point in ("mean", "p50", "p90", "p99"))]
        for name, text in _LATENCIES.items()
    ]
    console.print(plain_table(["latency", "mean", "P50", "P90", "P99"], rows, numbers=4))
    summary = {
        "within both SLOs": "slo_attainment",
        "goodput, 1/s": "goodput",
        "goodput a GPU, 1/s": "goodput_per_gpu",
        "utilisation": "utilization",
        "refused": "num_rejected",
        "most KV tokens reserved": "peak_kv",
    }
    lines = [[text, cell(figures[name])] for text, name in summary.items()]
    console.print(plain_table(["measure", "value"], lines, numbers=1))


def _tell_rates(by_rate: list[dict[str, Any]]) -> None:
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.cli.serving_told import cell

    if not by_rate:
        return
    console = screen()
    heading(console, "At other rates")
    names = ("rate", "slo_attainment", "goodput", "p99_ttft", "p99_tpot")
    rows = [[cell(row[name]) for name in names] for row in by_rate]
    columns = ["requests/s", "within both SLOs", "goodput, 1/s", "P99 TTFT, s", "P99 TPOT, s"]
    console.print(plain_table(columns, rows, numbers=5))
