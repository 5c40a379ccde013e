"""A bill as FOCUS 1.0 has it (FinOps Open Cost and Usage Specification), to the cent.

A row is what the jobs of one account and user cost on one GPU type in one month of the site's zone;
what nobody held in a month is a row of its own. Rows are rounded to cents so that they add up to
the bill's cents (largest remainders).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.cost import ANY_TYPE
from windtunnel.errors import SpecError, quote
from windtunnel.traces.wallclock import zone_info

if TYPE_CHECKING:
    from windtunnel.characterize.cost import Bill

_HOUR = 3600.0
_CENTS = pa.decimal128(18, 2)
_FINE = pa.decimal128(24, 6)
#: Columns that a cluster's bill has no use for; the specification wants them there, null.
_EMPTY = (
    *("AvailabilityZone", "ChargeClass", "CommitmentDiscountCategory", "CommitmentDiscountId"),
    *("CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType"),
    *("RegionId", "RegionName"),
)
#: Name in the specification -> the name that focus-validator 1.0 asks for.
_ALIASES = {
    "ChargeCategory": "ChargeType",
    "InvoiceIssuerName": "InvoiceIssuer",
    "ProviderName": "Provider",
    "PublisherName": "Publisher",
    "ResourceId": "ResourceID",
}
_CURRENCY = re.compile("[A-Z]{3}")


@dataclass(frozen=True)
class _Row:
    """What was charged in a month.

    Attributes:
        month: its number.
        who: account, user and GPU type; None = nobody held it.
        cost: in the bill's currency.
        hours: GPU hours.
    """

    month: int
    who: tuple[str, str, str] | None
    cost: float
    hours: float


def focus_table(found: Bill, name: str, epoch: str | None, zone: str | None) -> pa.Table:
    """Return a bill's rows.

    Args:
        found: the bill.
        name: of the cluster: billing account and provider.
        epoch: UTC instant of time 0, ISO 8601.
        zone: IANA zone of the months; None = UTC.

    Raises:
        SpecError: the trace has no dates, or the prices no currency by its three letters.
    """
    if epoch is None:
        raise SpecError("--to focus", "the trace has no dates, and a bill is of months.")
    if not _CURRENCY.fullmatch(found.prices.currency):
        raise SpecError(
            "--to focus",
            f"found the currency {quote(found.prices.currency)}; expected three letters, such as "
            "currency = 'EUR' in --prices FILE.toml.",
        )
    zero = datetime.fromisoformat(epoch).timestamp()
    first, last = found.recorded.span
    edges = _months(first + zero, last + zero, zone) - zero
    rows = _rows(found, edges)
    cents = _rounded([row.cost for row in rows], found.total)
    columns: dict[str, list[Any]] = {}
    for row, cost in zip(rows, cents, strict=True):
        start, end = max(edges[row.month], first), min(edges[row.month + 1], last)
        periods = {
            "BillingPeriodStart": edges[row.month],
            "BillingPeriodEnd": edges[row.month + 1],
            "ChargePeriodStart": start,
            "ChargePeriodEnd": end,
        }
        instants = {key: _instant(at + zero) for key, at in periods.items()}
        for key, value in (instants | _charge(row, cost, name, found.prices.currency)).items():
            columns.setdefault(key, []).append(value)
    return _table(columns, len(rows))


def _months(first: float, last: float, zone: str | None) -> np.ndarray:
    """Return the beginnings of the months from ``first`` to beyond ``last``, s since 1970."""
    where = zone_info(zone or "UTC")
    at = datetime.fromtimestamp(first, where)
    year, month = at.year, at.month
    edges: list[float] = []
    while not edges or edges[-1] <= last:
        edges.append(datetime(year, month, 1, tzinfo=where).timestamp())
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)  # noqa: PLR2004
    return np.array(edges)


def _rows(found: Bill, edges: np.ndarray) -> list[_Row]:
    """Return what was held in each month by each account, user and type, and by nobody."""
    recorded = found.recorded
    names = [recorded.names("vc"), recorded.names("user")]
    types = recorded.jobs["gpu_type"].fill_null(ANY_TYPE).to_pylist()
    who = [
        (names[0][1][a], names[1][1][u], kind)
        for a, u, kind in zip(names[0][0].tolist(), names[1][0].tolist(), types, strict=True)
    ]
    first, last = recorded.span
    rows: list[_Row] = []
    for month, (begin, end) in enumerate(pairwise(edges.tolist())):
        part = _part(found, begin, end, is_first=month == 0)
        sums: dict[tuple[str, str, str], list[float]] = {}
        for job in np.flatnonzero(part * recorded.gpu_time > 0).tolist():
            cost_and_hours = sums.setdefault(who[job], [0.0, 0.0])
            cost_and_hours[0] += found.cost[job] * part[job]
            cost_and_hours[1] += recorded.gpu_time[job] * part[job] / _HOUR
        mine = [_Row(month, key, cost, hours) for key, (cost, hours) in sorted(sums.items())]
        share = max(0.0, min(end, last) - max(begin, first)) / max(last - first, 1e-9)
        idle = found.total * share - sum(row.cost for row in mine)
        hours = found.num_gpus * found.span_hours * share - sum(row.hours for row in mine)
        rows += [*mine, _Row(month, None, idle, hours)]
    return rows


def _part(found: Bill, begin: float, end: float, *, is_first: bool) -> np.ndarray:
    """Return which part of each job's GPU time lies in a month; without times, in the first."""
    recorded = found.recorded
    length = recorded.end - recorded.start
    over = np.minimum(recorded.end, end) - np.maximum(recorded.start, begin)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.clip(over, 0.0, None) / length
    timeless = ~(length > 0) & (recorded.gpu_time > 0)
    return np.where(timeless, float(is_first), np.nan_to_num(part))


def _rounded(costs: list[float], total: float) -> list[Decimal]:
    """Return costs in cents that add up to the total's: the largest remainders are rounded up."""
    exact = np.array(costs) * 100
    cents = np.floor(exact)
    missing = round(total * 100) - int(cents.sum())
    order = np.argsort(cents - exact, kind="stable")
    for place in range(abs(missing)):
        cents[order[place % len(order)]] += np.sign(missing)
    return [Decimal(int(value)).scaleb(-2) for value in cents]


def _charge(row: _Row, cost: Decimal, name: str, currency: str) -> dict[str, Any]:
    account, user, kind = row.who or ("", "", ANY_TYPE)
    gpus = "GPU" if kind == ANY_TYPE else f"{kind} GPU"
    description = f"{gpus} hours held by {user}" if row.who else "GPU hours that nobody held"
    hours = Decimal(f"{row.hours:.6f}")
    price = Decimal(f"{row.cost / row.hours if row.hours else 0.0:.6f}")
    found: dict[str, Any] = dict.fromkeys(("BilledCost", "ContractedCost", "EffectiveCost"), cost)
    found |= {"ListCost": cost, "ContractedUnitPrice": price, "ListUnitPrice": price}
    found |= {"ConsumedQuantity": hours, "PricingQuantity": hours}
    found |= dict.fromkeys(("ConsumedUnit", "PricingUnit"), "GPU Hours")
    found |= dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), name)
    found |= dict.fromkeys(("ResourceId", "ResourceName", "SkuId", "SkuPriceId"), gpus)
    return found | {
        "BillingAccountId": name,
        "BillingAccountName": name,
        "BillingCurrency": currency,
        "ChargeCategory": "Usage",
        "ChargeDescription": description,
        "ChargeFrequency": "Usage-Based",
        "PricingCategory": "Standard",
        "ResourceType": "GPU",
        "ServiceCategory": "Compute",
        "ServiceName": "GPU cluster",
        "SubAccountId": account or "(nobody)",
        "SubAccountName": account or "(nobody)",
        "Tags": json.dumps({"user": user} if row.who else {}),
    }


def _table(columns: dict[str, list[Any]], rows: int) -> pa.Table:
    """Return the columns in the order of their names, those without a use null."""
    found = columns | {name: [None] * rows for name in _EMPTY}
    found |= {alias: found[name] for name, alias in _ALIASES.items()}
    kinds = {name: _CENTS for name in found if name.endswith("Cost")}
    kinds |= {name: _FINE for name in found if name.endswith(("Quantity", "UnitPrice"))}
    ordered = sorted(found)
    return pa.table({name: pa.array(found[name], kinds.get(name, pa.string())) for name in ordered})


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(round(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
