"""``windtunnel serving llm`` and ``llm-capacity``: continuous batching on recorded requests."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Seconds, output_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.serving import LlmModel, RequestTrace

_LATENCIES = {"ttft": "TTFT, s", "tpot": "TPOT, s", "e2e": "end to end, s"}
_model_option = click.option(
    "--model",
    metavar="PARAMS.toml",
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


@click.command(short_help="Serve a language model with continuous batching.")
@click.argument("trace", metavar="TRACE")
@_model_option
@click.option(
    "--replicas", type=click.IntRange(1, 65536), default=1, show_default=True, help="Replicas."
)
@_ttft_option(required=False)
@_tpot_option
@_dispatch_option
@output_options
def llm(*, trace: str, as_json: bool, **asked: Any) -> None:
    """Serve TRACE, an Azure LLM or Mooncake file, on replicas of a language model.

    Tells time to first token, time per output token, end-to-end latency, and goodput under the
    SLOs given.
    """
    from windtunnel import serving as rooms

    requests, model = _read(trace, asked["model"])
    run = rooms.simulate_llm(requests, model, asked["replicas"], asked["dispatch"])
    figures = run.metrics(_slo(asked["ttft"]), _slo(asked["tpot"]))
    settings = {name: asked[name] for name in ("replicas", "dispatch", "ttft", "tpot")}
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({"settings": settings, "model": _data(model), "metrics": figures})
        return
    _tell(figures, asked["replicas"])


@click.command("llm-capacity", short_help="How many GPUs a language model needs.")
@click.argument("trace", metavar="TRACE")
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

    requests, model = _read(trace, asked["model"])
    with progress("Searching", show=shows_progress(as_json=as_json)):
        found = rooms.llm_capacity(
            requests, model, asked["ttft"], asked["dispatch"], asked["max_replicas"]
        )
    figures = found.outcome.metrics(asked["ttft"], _slo(asked["tpot"]))
    if as_json:
        from windtunnel.cli.machine import print_json

        tried = [{"replicas": n, "p99_ttft": p99} for n, p99 in sorted(found.tried.items())]
        told = {"replicas": found.replicas, "gpus": found.gpus, "tried": tried}
        print_json({**told, "model": _data(model), "metrics": figures})
        return
    _tell(figures, found.replicas)


def _slo(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _data(model: LlmModel) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(model)


def _read(trace: str, params: str | None) -> tuple[RequestTrace, LlmModel]:
    from windtunnel import serving as rooms
    from windtunnel.errors import TraceError

    try:
        requests = rooms.read_requests(Path(trace))
    except OSError as error:
        raise TraceError(trace, "a readable file", hint=str(error)) from error
    if isinstance(requests, rooms.MinuteCounts):
        raise TraceError(trace, "requests with prompt and output tokens")
    model = rooms.synthetic_llm() if params is None else rooms.read_llm_model(params)
    return requests, model


def _tell(figures: dict[str, float | None], replicas: int) -> None:
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.cli.serving_told import cell
    from windtunnel.report.format import count

    console = screen()
    total, gpus = int(figures["num_requests"] or 0), int(figures["gpus"] or 0)
    heading(console, f"{count(total)} requests, {replicas} replicas, {gpus} GPUs")
    rows = [
        [text, *(cell(figures[f"{point}_{name}"]) for point in ("mean", "p50", "p90", "p99"))]
        for name, text in _LATENCIES.items()
    ]
    console.print(plain_table(["", "mean", "P50", "P90", "P99"], rows, numbers=4))
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
