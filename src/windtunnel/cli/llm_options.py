"""What the commands of language models share: requests, a model, its engine, and promises."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import Seconds, seed_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.cli.options import Command
    from windtunnel.serving import LlmModel, LlmOutcome, RequestTrace

#: Keys of an engine that are options of their own.
_COUNTS = {
    "token_budget": "Tokens of an iteration.",
    "max_num_seqs": "Requests that a replica runs.",
    "block_size": "Tokens of a KV block.",
    "num_blocks": "KV blocks of a replica.",
    "reserve_tokens": "Tokens that orca reserves for each request.",
    "stages": "Pipeline stages.",
    "affinity_slack": "Requests more than the least loaded replica has, for prefix_affinity.",
}
_FLAGS = {
    "prefix_caching": "Find KV blocks again by what they hold.",
    "reserve_prompt": "Admit a request only if all of its tokens so far fit.",
}
ENGINE = ("scheduler", *_COUNTS, *_FLAGS, "watermark")
SLOS = ("ttft", "tpot", "e2e")


class Span(Seconds):
    """A time span that may also be in milliseconds: ``100ms``."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the span in seconds.

        Raises:
            click.BadParameter: it is no number, negative or not finite.
        """
        text = str(value).strip().lower()
        if text.endswith("ms"):
            return super().convert(text[:-2], param, ctx) / 1000
        return super().convert(value, param, ctx)


class PerKwh(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A number, or a file of numbers over time."""

    name = "number or file"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Return the number, or the name of the file.

        Raises:
            click.BadParameter: a number below 0, or not finite.
        """
        try:
            number = float(value)
        except ValueError:
            return str(value)
        if not 0 <= number < math.inf:
            self.fail(f"found {value!a}; expected a number >= 0, or a CSV file.", param, ctx)
        return number


def trace_options(command: Command) -> Command:
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


def engine_options(command: Command) -> Command:
    """Add every key of ``[engine]``; what is typed goes before the file's."""
    adds: list[Callable[..., Any]] = [
        click.option("--scheduler", metavar="NAME", help="vllm_v1, sarathi, vllm_v0 or orca."),
        click.option("--watermark", type=float, help="Part of the blocks left free at admission."),
    ]
    for key, words in _COUNTS.items():
        adds.append(click.option(_option(key), type=int, metavar="N", help=words))
    for key, words in _FLAGS.items():
        both = f"{_option(key)}/--no-{_option(key)[2:]}"
        adds.append(click.option(both, default=None, help=words))
    for add in reversed(adds):
        command = add(command)
    return command


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def slo_options(command: Command) -> Command:
    """Add the SLOs, carbon, tariff and price."""
    for add in (
        click.option("--price", type=float, metavar="X", help="Of a GPU for an hour."),
        click.option(
            "--tariff",
            type=PerKwh(),
            metavar="X|FILE.csv",
            help="Of a kWh: one number, or over time (time, value); in money, too.",
        ),
        click.option(
            "--carbon",
            type=PerKwh(),
            metavar="G|FILE.csv",
            help="g/kWh: one number, or over time (time, value).",
        ),
        click.option("--e2e", type=Span(), help="SLO of the time to the last token."),
        click.option("--tpot", type=Span(), help="SLO of the mean time of each further token."),
        click.option("--ttft", type=Span(), help="SLO of the time to the first token."),
    ):
        command = add(command)
    return command


model_option = click.option(
    "--model",
    metavar="MODEL.toml[#NAME]",
    help="Costs, engine, power and pools of a replica.  [default: a made-up model]",
)


def slos_from(asked: dict[str, Any]) -> dict[str, float]:
    """Return the SLOs asked for, s; infinite where there is none."""
    return {name: math.inf if asked[name] is None else asked[name] for name in SLOS}


def prices_from(asked: dict[str, Any]) -> dict[str, Any]:
    """Return carbon, tariff and price; None where there is none.

    Raises:
        TraceError: a file cannot be read, or has a value below 0.
    """
    from windtunnel.energy.intensity import read_series

    found = {name: asked[name] for name in ("carbon", "tariff", "price")}
    files = {name: one for name, one in found.items() if isinstance(one, str)}
    return found | {name: read_series(one, least=0.0) for name, one in files.items()}


def model_from(name: str | None, asked: dict[str, Any]) -> LlmModel:
    """Return a file's model, or the made-up one, with the keys of its engine that were typed.

    Raises:
        SpecError: the file or a value is wrong.
    """
    from dataclasses import replace

    from windtunnel import serving as rooms

    model = rooms.synthetic_llm() if name is None else rooms.read_llm_model(name)
    typed = {key: asked[key] for key in ENGINE if asked.get(key) is not None}
    if typed and model.engine is None:
        size = typed.get("block_size", 16)
        first = {"num_blocks": (model.kv_limit or 0) // max(size, 1), "block_size": size}
        engine = rooms.Engine(**{"max_num_seqs": model.max_batch, **first, **typed})
        return replace(model, engine=engine)
    return model.but(**typed)


def requests_from(trace: str, asked: dict[str, Any]) -> RequestTrace:
    """Return the requests of a file, drawn or at another rate where that is asked for.

    Raises:
        TraceError: it cannot be read, or tells no tokens.
        click.UsageError: a file of lengths is to be served as it is.
    """
    from windtunnel import serving as rooms
    from windtunnel.errors import TraceError

    try:
        requests = rooms.read_requests(Path(trace))
    except OSError as error:
        raise TraceError(trace, "a readable file", hint=str(error)) from error
    if isinstance(requests, rooms.MinuteCounts) or not len(requests.prompt_tokens):
        raise TraceError(trace, "requests with prompt and output tokens")
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


def save_requests(outcome: LlmOutcome, out: Path) -> None:
    """Write a row a request, in order of arrival; empty where it was refused."""
    import numpy as np
    import pyarrow as pa

    from windtunnel.cli.saving import save_table

    refused = outcome.replica < 0
    columns = {
        "request": pa.array(np.arange(len(refused))),
        "arrival": pa.array(outcome.requests.arrival),
        "replica": pa.array(outcome.replica, mask=refused),
    }
    for name in ("first_token", "finish", "ttft", "tpot", "e2e"):
        values = getattr(outcome, name)
        columns[name] = pa.array(values, mask=np.isnan(values))
    for name in ("restarts", "cached_tokens"):
        columns[name] = pa.array(getattr(outcome, name), mask=refused)
    save_table(pa.table(columns), out)
