"""``windtunnel serving llm-fit``: a language model's four costs, from measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windtunnel.cli.options import out_option, output_options
from windtunnel.cli.serving_told import cell, check_ending, replace

if TYPE_CHECKING:
    from pathlib import Path

_COSTS = ("iteration_s", "prefill_token_s", "decode_seq_s", "kv_token_s")


@click.command("llm-fit", short_help="Fit a language model's costs to measured iterations.")
@click.argument("measurements", metavar="MEASUREMENTS.csv")
@click.option(
    "--kv-limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens that the KV memory of a replica holds; what --out needs.",
)
@click.option(
    "--max-batch",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Most sequences in an iteration.",
)
@click.option(
    "--gpus", type=click.IntRange(min=1), default=1, show_default=True, help="GPUs of a replica."
)
@out_option("FILE.toml", "Write the models, for `serving llm --model FILE.toml#NAME`.")
@output_options
def llm_fit(
    *,
    measurements: str,
    kv_limit: int | None,
    max_batch: int,
    gpus: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Fit iteration time = a + b prefill tokens + c decoding sequences + d KV tokens.

    MEASUREMENTS.csv has a row an iteration: prefill_tokens, decode_seqs, kv_tokens, iteration_time
    (s), and model and gpu_type where there are several; each pair is fitted by itself.
    """
    from windtunnel import serving as rooms

    check_ending(out, (".toml",))
    if out is not None and kv_limit is None:
        raise click.UsageError("--out: expected --kv-limit N, too.")
    fits = rooms.fit_llms(measurements)
    models = [
        {
            "name": name,
            **dict(zip(_COSTS, fit.costs.tolist(), strict=True)),
            "num_rows": fit.num_rows,
            "rmse": fit.rmse,
            "mean_relative_error": fit.mean_relative_error,
        }
        for name, fit in fits.items()
    ]
    if out is not None:
        from windtunnel.serving.llm_files import llm_models_toml

        made = {
            name or "model": fit.model(int(kv_limit or 0), max_batch, gpus)
            for name, fit in fits.items()
        }
        replace(out, llm_models_toml(made))
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({"models": models, "out": None if out is None else str(out)})
        return
    from windtunnel.cli.screen import heading, plain_table, screen
    from windtunnel.report.format import plural

    console = screen()
    heading(console, f"{plural(sum(fit.num_rows for fit in fits.values()), 'iteration')}")
    rows = [
        [
            str(one["name"]),
            *(f"{one[cost]:.4g}" for cost in _COSTS),
            str(one["num_rows"]),
            cell(100 * fit.mean_relative_error),
        ]
        for one, fit in zip(models, fits.values(), strict=True)
    ]
    columns = ["model", *_COSTS, "rows", "error, %"]
    console.print(plain_table(columns, rows, numbers=6))
