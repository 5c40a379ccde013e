"""Bills as FOCUS 1.0 has them: what the specification says of columns, and sums to the cent."""

from __future__ import annotations

import json
import random
from datetime import datetime
from decimal import Decimal

import pytest

import windtunnel as wt
from windtunnel.characterize.cost import Prices, bill
from windtunnel.characterize.focus import focus_table
from windtunnel.errors import SpecError

DAY = 86400.0
#: Columns that FOCUS 1.0 wants in every row, and those that may be null (its column rules).
NEEDED = (
    *("BilledCost", "BillingAccountId", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "ChargeCategory", "ChargePeriodEnd", "ChargePeriodStart"),
    *("ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ProviderName"),
    *("PublisherName", "ServiceCategory", "ServiceName"),
)
NULLABLE = (
    *("AvailabilityZone", "BillingAccountName", "ChargeClass", "ChargeDescription"),
    *("ChargeFrequency", "CommitmentDiscountCategory", "CommitmentDiscountId"),
    *("CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType"),
    *("ConsumedQuantity", "ConsumedUnit", "ContractedUnitPrice", "ListUnitPrice"),
    *("PricingCategory", "PricingQuantity", "PricingUnit", "RegionId", "RegionName"),
    *("ResourceId", "ResourceName", "ResourceType", "SkuId", "SkuPriceId", "SubAccountId"),
    *("SubAccountName", "Tags"),
)
EUR = Prices(gpus={"a100": 2.513}, default=1.237, currency="EUR")


def jobs(number: int = 200) -> dict[str, list[object]]:
    rng = random.Random(0)  # noqa: S311 - no secret
    submit = sorted(rng.uniform(0, 70 * DAY) for _ in range(number))
    wait = [rng.expovariate(1 / 3600) for _ in submit]
    run = [rng.expovariate(1 / DAY) for _ in submit]
    start = [at + more for at, more in zip(submit, wait, strict=True)]
    return {
        "submit_time": submit,
        "start_time": start,
        "end_time": [at + more for at, more in zip(start, run, strict=True)],
        "duration": run,
        "num_gpus": [float(rng.choice([1, 2, 4])) for _ in submit],
        "gpu_type": [rng.choice(["a100", None]) for _ in submit],
        "user": [rng.choice(["ann", "=bob"]) for _ in submit],
        "vc": [rng.choice(["nlp", "cv"]) for _ in submit],
    }


def test_rows_keep_the_rules_and_add_up_to_the_cent() -> None:
    found = bill(wt.schema.as_jobs(jobs()), wt.ClusterSpec.uniform(8, 4, "a100"), EUR)
    rows = focus_table(found, "mine", "2025-01-20T12:00:00+00:00", "Europe/Berlin").to_pylist()
    assert all(row[name] is not None for row in rows for name in NEEDED)
    assert {*NEEDED, *NULLABLE} <= rows[0].keys()
    assert sum(row["BilledCost"] for row in rows) == round(Decimal(found.total), 2)
    idle = sum(row["BilledCost"] for row in rows if "nobody" in row["ChargeDescription"])
    assert float(idle) == pytest.approx(found.idle, abs=0.05)
    held = sum(row["PricingQuantity"] for row in rows if "nobody" not in row["ChargeDescription"])
    assert float(held) == pytest.approx(found.recorded.gpu_time.sum() / 3600, abs=1e-3)
    by_user = {name: Decimal(0) for name in ("ann", "=bob")}
    for row in rows:
        who = json.loads(row["Tags"]).get("user")
        if who:
            by_user[who] += row["EffectiveCost"]
    for row in found.by("user").to_pylist():
        assert float(by_user[row["user"]]) == pytest.approx(row["cost"], abs=0.2)


def test_months_are_those_of_the_zone() -> None:
    found = bill(wt.schema.as_jobs(jobs()), wt.ClusterSpec.uniform(8, 4, "a100"), EUR)
    table = focus_table(found, "mine", "2025-01-20T12:00:00+00:00", "Europe/Berlin")
    starts = sorted(set(table["BillingPeriodStart"].to_pylist()))
    assert starts[:3] == ["2024-12-31T23:00:00Z", "2025-01-31T23:00:00Z", "2025-02-28T23:00:00Z"]
    assert starts[3] == "2025-03-31T22:00:00Z"  # summer time
    for row in table.to_pylist():
        order = ("BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodEnd")
        times = [datetime.fromisoformat(row[name]) for name in order]
        assert times == sorted(times)


@pytest.mark.parametrize(
    ("prices", "epoch", "message"),
    [
        (EUR, None, "no dates"),
        (Prices(default=1.0), "2025-01-20T12:00:00+00:00", "three letters"),
    ],
)
def test_without_dates_or_a_currency_there_is_no_bill(
    prices: Prices, epoch: str | None, message: str
) -> None:
    found = bill(wt.schema.as_jobs(jobs(3)), None, prices)
    with pytest.raises(SpecError, match=message):
        focus_table(found, "mine", epoch, None)
