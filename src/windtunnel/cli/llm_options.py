"""What the commands of language models share: requests, a model, its engine, and promises."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import TIME, Parsed, option, seed_option, span, together
from windtunnel.cli.presenting import save_table
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.cli.options import Command
    from windtunnel.serving import LlmModel, LlmOutcome, LlmSetup, RequestTrace

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
_RATIO = re.compile(r"(\d{1,6}):(\d{1,6})")
_DEGREE = re.compile(r"[0-9]{1,6}")


def short_span(word: str) -> float:
    """Return a time span in s, which may also be in milliseconds: ``100ms``.

    Raises:
        SpecError: it is no number, negative or not finite.
    """
    text = word.strip().lower()
    return span(text[:-2]) / 1000 if text.endswith("ms") else span(word)


def _per_kwh(word: str) -> float | str:
    """Return a number, or the name of a file of numbers over time."""
    try:
        number = float(word)
    except ValueError:
        return word
    if not 0 <= number < math.inf:
        raise ValueError(f"found {word!a}; expected a number >= 0, or a CSV file.")
    return number


_SHORT, _PER_KWH = Parsed("time", short_span), Parsed("number or file", _per_kwh)


#: Add TRACE and what changes it.
trace_options = together(
    click.argument("trace", metavar="TRACE"),
    option(
        "--rate X",
        "Requests/s: gaps are scaled, or drawn with --duration.  [default: as recorded]",
        float,
    ),
    option(
        "--duration",
        "Draw requests for so long, with lengths of TRACE; what files of lengths need.",
        TIME,
    ),
    option("--cv", "With --duration: cv of the gaps.", float, default=1.0, show_default=False),
    seed_option("Of drawn requests.  [default: 0]"),
)


def engine_options(command: Command) -> Command:
    """Add every key of ``[engine]``; what is typed goes before the file's."""
    adds: list[Callable[..., Any]] = [
        option("--scheduler NAME", "vllm_v1, sarathi, vllm_v0 or orca."),
        option("--watermark", "Part of the blocks left free at admission.", float),
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


#: Add the SLOs, carbon, tariff and price.
slo_options = together(
    option("--ttft", "SLO of the time to the first token.", _SHORT),
    option("--tpot", "SLO of the mean time of each further token.", _SHORT),
    option("--e2e", "SLO of the time to the last token.", _SHORT),
    option("--carbon G|FILE.csv", "g/kWh: one number, or over time (time, value).", _PER_KWH),
    option(
        "--tariff X|FILE.csv",
        "Of a kWh: one number, or over time (time, value); in money, too.",
        _PER_KWH,
    ),
    option("--price X", "Of a GPU for an hour.", float),
)


model_option = option(
    "--model MODEL.toml[#NAME]",
    "Costs, engine, power and pools of a replica.  [default: a made-up model]",
)


#: Add the models, rules, degrees and pools that are compared.
setup_options = together(
    option(
        "--model MODEL.toml[#NAME]",
        "Costs, engine, power and pools of a replica; repeat to compare.  "
        "[default: a made-up model]",
        dest="models",
        multiple=True,
    ),
    option(
        "--dispatch RULE,...",
        "Rules to try: least_loaded, round_robin, least_waiting, least_tokens, prefix_affinity.",
        default="least_loaded",
    ),
    option("--tp N,...", "Degrees of tensor parallelism to try."),
    option("--split-ratio P:D,...", "Pools of prefill and decode to try."),
)


def slos_from(asked: dict[str, Any]) -> dict[str, float]:
    """Return the SLOs asked for, s; infinite where there is none."""
    return {name: math.inf if asked[name] is None else asked[name] for name in SLOS}


def prices_from(asked: dict[str, Any]) -> dict[str, Any]:
    """Return carbon, tariff and price; None where there is none.

    Raises:
        SpecError: a number is below 0, or more than any price.
        TraceError: a file cannot be read, or has a value below 0.
    """
    from windtunnel.energy.series_files import CARBON, PRICE, read_series
    from windtunnel.serving.llm_outcome import check_prices

    found = {name: asked[name] for name in ("carbon", "tariff", "price")}
    check_prices(**{f"--{name}": one for name, one in found.items() if not isinstance(one, str)})
    files = {name: one for name, one in found.items() if isinstance(one, str)}
    return found | {
        name: read_series(one, CARBON if name == "carbon" else PRICE) for name, one in files.items()
    }


def model_from(name: str | None, asked: dict[str, Any]) -> LlmModel:
    """Return a file's model, or the made-up one, with the keys of its engine that were typed.

    Raises:
        SpecError: the file or a value is wrong.
    """
    from windtunnel import serving

    model = serving.synthetic_llm() if name is None else serving.read_llm_model(name)
    return model.but(**{key: asked[key] for key in ENGINE if asked.get(key) is not None})


def setups_from(asked: dict[str, Any]) -> list[LlmSetup]:
    """Return every model with every degree, ratio and rule that was asked for.

    Raises:
        SpecError: a model's file is wrong, or its costs do not go with a degree.
        click.UsageError: a list cannot be read.
    """
    from windtunnel import serving

    setups = []
    for name in asked["models"] or (None,):
        model = model_from(name, asked)
        for degree in _numbers("--tp", asked["tp"]) or (None,):
            at_degree = model if degree is None else model.at_degree(degree)
            for ratio in _ratios(asked["split_ratio"]) or (None,):
                made = at_degree if ratio is None else _split(at_degree, *ratio)
                setups += [
                    serving.LlmSetup(_named(name, degree, ratio), made, rule.strip())
                    for rule in asked["dispatch"].split(",")
                ]
    return setups


def _named(name: str | None, degree: int | None, ratio: tuple[int, int] | None) -> str:
    words = [name or "made-up"]
    words += [] if degree is None else [f"tp {degree}"]
    words += [] if ratio is None else [f"{ratio[0]}:{ratio[1]}"]
    return " ".join(words)


def _numbers(option: str, text: str | None) -> list[int]:
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if not all(_DEGREE.fullmatch(word) and int(word) for word in words):
        raise click.UsageError(f"{option}: found {text!a}; expected numbers 1,2,4.")
    return [int(word) for word in words]


def _ratios(text: str | None) -> list[tuple[int, int]]:
    found = [] if text is None else [_RATIO.fullmatch(word.strip()) for word in text.split(",")]
    ratios = [(int(one[1]), int(one[2])) for one in found if one is not None]
    if len(ratios) < len(found) or not all(p and d for p, d in ratios):
        raise click.UsageError(f"--split-ratio: found {text!a}; expected ratios 1:1,2:1.")
    return ratios


def _split(model: LlmModel, prefill: int, decode: int) -> LlmModel:
    if model.split is None:
        raise SpecError("--split-ratio", "expected a model with [split].")
    from dataclasses import replace

    pools = replace(model.split, prefill_replicas=prefill, decode_replicas=decode)
    return replace(model, split=pools)


def requests_from(trace: str, asked: dict[str, Any]) -> RequestTrace:
    """Return the requests of a file, drawn or at another rate where that is asked for.

    Raises:
        TraceError: it cannot be read, or tells no tokens.
        click.UsageError: a file of lengths is to be served as it is.
    """
    from windtunnel import serving
    from windtunnel.serving.request_traces import read_token_requests

    requests = read_token_requests(trace)
    rate, duration = asked["rate"], asked["duration"]
    if requests.format == "lengths" or duration is not None:
        if rate is None or duration is None:
            raise click.UsageError(
                f"{requests.name}: expected --rate and --duration, to draw requests of its lengths."
            )
        cv = asked["cv"]
        process = serving.Gamma(rate, cv) if cv else serving.Deterministic(rate)
        return requests.drawn(process, duration, asked["seed"] or 0)
    return requests if rate is None else requests.at_rate(rate)


def save_requests(outcome: LlmOutcome, out: Path) -> None:
    """Write a row a request, in order of arrival; empty where it was refused."""
    import numpy as np
    import pyarrow as pa

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
