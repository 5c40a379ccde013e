"""``windtunnel report cost``: the bill, and who pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import one_of, option, trace_options
from windtunnel.cli.presenting import PAGES, presented
from windtunnel.cli.recorded_site import as_typed, site_options
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.characterize.cost import Prices
    from windtunnel.report.result import Result


@click.command(short_help="What do the GPU hours cost, and who pays?")
@trace_options
@option("--price X", "Price of a GPU hour, of all types.", click.FloatRange(min=0))
@option(
    "--prices FILE.toml",
    "Prices by GPU type: default = 1.5, currency = 'EUR', and [gpus] A100 = 2.5.",
)
@option(
    "--to focus",
    "Write the bill to --out FILE.csv as FOCUS 1.0 has it: rows by month, account, user and "
    "GPU type, in cents that add up to the bill.",
    one_of("focus"),
)
@site_options
@option("--power FILE.toml", "What the cluster draws: also tell energy, as `simulate`.")
@option("--carbon X|FILE.csv", "g CO2eq per kWh: also tell emissions.")
@option("--tariff X|FILE.csv", "Price of a kWh: also tell what energy cost.")
@presented(
    (*PAGES, ".csv"),
    "Write the answer as one page with charts; with --to focus the bill.",
    metavar="FILE.html|FILE.csv",
    key="page",
)
def cost(
    *,
    trace: str,
    price: float | None,
    prices: str | None,
    to: str | None,
    cluster: str | None,
    slurm_conf: str | None,
    trust: bool,
    power: str | None,
    carbon: str | None,
    tariff: str | None,
    **asked: Any,
) -> Result:
    """Tell what the GPU hours of TRACE cost, by user and virtual cluster, with an idle line.

    Costs of jobs and the idle line add up to the bill: every GPU of the cluster at its price, from
    the first submission to the last end.

    TRACE is a name (`windtunnel traces`), a file such as an sacct log, or - for standard input.
    """
    from dataclasses import replace

    from windtunnel.characterize.cost import bill
    from windtunnel.characterize.focus import focus_table
    from windtunnel.energy import PowerModel, account
    from windtunnel.energy.accounting import Accounting
    from windtunnel.report.cost_report import cost_answer, cost_data
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.recording import observed_cluster, recorded_outcome
    from windtunnel.study.resolving import resolved, with_series

    _check_file(to)
    asked_prices = prices_of(price, prices)
    accounted = {"power": power, "carbon": carbon, "tariff": tariff}
    accounting = Accounting.of(with_series(Conditions().having(**accounted)).site)
    model = None if power is None else PowerModel.from_toml(power)
    chosen = resolved(as_typed(trace, cluster, slurm_conf, trust=trust)).site.cluster
    request = TraceRequest(trace, **asked)
    opened = open_request(request)
    spec = chosen or opened.cluster
    found = bill(opened.jobs, spec, asked_prices)
    where = spec or observed_cluster(opened.jobs)
    if where is None and found.recorded.gpu_time.any():
        raise SpecError.no_cluster(opened.name)
    book = None
    if where is not None and model is not None:
        recorded = recorded_outcome(opened.jobs, where)
        book = account(recorded, model, carbon=accounting.carbon, tariff=accounting.tariff)
    answer = cost_answer(found, opened, book)
    if to is not None:
        about = opened.metadata
        table = focus_table(found, opened.name, about.epoch, about.zone)
        answer = replace(answer, table=lambda: table)
    return answer.with_data({"trace": trace_data(opened), **cost_data(found, book)})


def _check_file(to: str | None) -> None:
    """Check that the file that is asked for is the one that ``--to`` writes.

    Raises:
        SpecError: a bill without a .csv to write it to, or a .csv without ``--to``.
    """
    out = click.get_current_context().params["out"]
    is_table = out is not None and out.suffix.lower() == ".csv"
    if to is not None and not is_table:
        raise SpecError(f"--to {to}", "expected a file to write it to, such as --out bill.csv.")
    if to is None and is_table:
        raise SpecError(f"--out {out}", "a .csv is a bill; add --to focus, or name an .html.")


def prices_if_any(price: float | None, file: str | None) -> Prices | None:
    """Return the prices that were asked for, as `prices_of` does; None where none were."""
    return None if price is None and file is None else prices_of(price, file)


def prices_of(price: float | None, file: str | None) -> Prices:
    """Return the prices that were asked for.

    Raises:
        SpecError: none, or both; or the file is wrong.
    """
    from windtunnel.characterize.cost import Prices

    if (price is None) == (file is None):
        raise SpecError("--price", "expected --price X or --prices FILE.toml, one of them.")
    return Prices(default=price) if file is None else Prices.from_toml(file)
