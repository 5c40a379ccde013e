"""``windtunnel serving llm-fit``: a language model's costs, from iterations or a request log."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.llm_options import engine_options, model_from
from windtunnel.cli.opening import check_out
from windtunnel.cli.options import COUNT, option, out_option, output_options, word_option
from windtunnel.cli.presenting import present, presented
from windtunnel.cli.serving_results import cell
from windtunnel.errors import TraceError
from windtunnel.report.format import plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.report.sections import Table
    from windtunnel.serving import LlmFit, LlmModel


@click.command("llm-fit", short_help="Fit a language model's costs to measurements.")
@click.argument("measurements", metavar="MEASUREMENTS.csv|LOG.jsonl")
@word_option(
    "--form",
    "linear",
    "piecewise",
    help_text="Straight lines, or a curve of prefills and a line of decodes.",
)
@word_option(
    "--weights", "relative", "absolute", help_text="Squares of fitted/measured - 1, or of seconds."
)
@option("--held-back F", "Tell the error on this part of the rows.", float)
@option("--kv-limit N", "Tokens that the KV memory of a replica holds.", COUNT)
@option(
    "--model ENGINE.toml",
    "Engine of the models written; with a log, where the search for costs begins.",
)
@option("--max-batch", "Most sequences in an iteration, with --kv-limit.", COUNT, default=256)
@option("--gpus", "GPUs of a replica.", COUNT, default=1)
@out_option("FILE.toml", "Write the models, for `serving llm --model FILE.toml#NAME`.")
@output_options
def llm_fit(*, measurements: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Fit iteration time = a + b prefill tokens + c decoding sequences + d KV tokens + q pairs.

    MEASUREMENTS.csv has a row an iteration: prefill_tokens, decode_seqs, kv_tokens, iteration_time
    (s), prefill_pairs where they were measured, and model and gpu_type where there are several;
    each pair is fitted by itself, and one that cannot be is noted (exit code 1). LOG.jsonl is a
    request log as of `llm-replay`: the costs are searched whose replay has the log's latencies.
    """
    check_out(out, (".toml",), measurements)
    if out is not None and asked["kv_limit"] is None and asked["model"] is None:
        raise click.UsageError("--out: expected --kv-limit N or --model ENGINE.toml, too.")
    is_log = ".jsonl" in measurements.lower()
    fits, models = (_from_log if is_log else _from_iterations)(measurements, asked)

    def text() -> str:
        from windtunnel.serving.llm_files import llm_models_toml

        return llm_models_toml(models)

    result = Result(
        plural(sum(one["num_rows"] for one in fits), "measurement"),
        parts=[Part("", tables=[("", _fitted(fits))])],
        notes=[f"not fitted: {one['error']}" for one in fits if one["error"]],
        data={"models": fits},
        text=text,
    )
    present(result, out, as_json=as_json)
    if any(one["error"] for one in fits):
        click.get_current_context().exit(1)


def _from_iterations(
    file: str, asked: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, LlmModel]]:
    from windtunnel import serving
    from windtunnel.serving.llm_fit import fit_figures

    try:
        fits = serving.fit_llms(file, asked["form"], asked["weights"], asked["held_back"])
    except OSError as error:
        raise TraceError(file, "a readable CSV of iterations", hint=str(error)) from error
    if all(fit.error for fit in fits.values()):
        raise next(fit.error for fit in fits.values() if fit.error)
    rows = [{"name": n, "form": asked["form"], **fit_figures(fit)} for n, fit in fits.items()]
    models = {
        name or "model": _model(fit, asked) for name, fit in fits.items() if fit.cost is not None
    }
    return rows, models


def _model(fit: LlmFit, asked: dict[str, Any]) -> LlmModel:
    from windtunnel.serving.llm_files import with_cost

    if asked["model"] is not None and fit.cost is not None:
        return with_cost(asked["model"], fit.cost)
    return fit.model(asked["kv_limit"] or 1, asked["max_batch"], asked["gpus"])


def _from_log(file: str, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, LlmModel]]:
    from windtunnel import serving
    from windtunnel.serving.llm_files import with_cost

    if asked["model"] is None:
        raise click.UsageError("a request log: expected --model ENGINE.toml, too.")
    start = with_cost(asked["model"], serving.synthetic_llm().cost, only_if_missing=True)
    found = serving.fit_log(file, start)
    model = changed(found.model, gpus=start.gpus)
    held = found.held_back
    row = {
        "name": "model",
        "form": "linear",
        **model.cost.data(),
        "num_rows": int(held.log.first.size) - held.num_rows,
        "mean_relative_error": found.fitted.mean_absolute_error,
        "held_back": {
            "num_rows": held.num_rows,
            "mean_relative_error": held.mean_absolute_error,
            "prefill": held.mean_error("ttft"),
            "decode": held.mean_error("tpot"),
        },
        "error": None,
    }
    return [row], {"model": model}


def _fitted(fits: list[dict[str, Any]]) -> Table:
    from windtunnel.serving.llm_costs import LINEAR

    rows = [
        [
            str(one["name"]),
            *(cell(one.get(cost)) for cost in LINEAR),
            str(one["num_rows"]),
            cell(100 * one["mean_relative_error"]),
            cell(100 * one["held_back"]["mean_relative_error"]) if one["held_back"] else "",
        ]
        for one in fits
        if not one["error"]
    ]
    return table_of(["model", "a", "b", "c", "d", "q", "rows", "error, %", "held back, %"], rows)


@click.command("llm-replay", short_help="Hold the simulation against an engine's request log.")
@click.argument("log", metavar="LOG.jsonl")
@option("--model MODEL.toml[#NAME]", "The engine, and what it costs.", required=True)
@engine_options
@presented(
    (".html",), "Write a page that shows request by request.", metavar="FILE.html", reads="log"
)
def llm_replay(*, log: str, model: str, **asked: Any) -> Result:
    """Serve the requests of a vLLM log again, and tell measured and simulated figures.

    LOG.jsonl has a line a request: input_toks, output_toks, queued_ts, first_token_ts and
    last_token_ts (s); a request arrives when it was queued.
    """
    from windtunnel import serving

    found = serving.replay_log(log, model_from(model, asked))
    from windtunnel.report.llm_result import replay_result

    return replay_result(found)
