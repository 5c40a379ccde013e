"""Studies over seeds: regret, savings, and when learning has paid back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from toy import JOB, TOY

from windtunnel.energy import Workload, band, study
from windtunnel.errors import InfeasibleError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("cifar100", "imagenet", "librispeech", "movielens-1m", "squad", "sentiment140")


def test_by_hand() -> None:
    result = study(TOY, ["zeus", "oracle"], seeds=[1, 2], recurrences=8)
    assert list(result.replications) == ["default", "zeus", "oracle"]
    # Zeus: 12650, 9010, 17525, 9000, 17500, 12600, 9000, 9000; the default 12600, optimum 9000.
    costs = np.array([12650, 9010, 17525, 9000, 17500, 12600, 9000, 9000.0])
    assert result.replications["zeus"].values["cost_j"].tolist() == [costs.tolist()] * 2
    assert result.regret("zeus")[0] == pytest.approx(
        (np.cumsum(costs) - 9000 * np.arange(1, 9)) / 9000
    )
    assert result.regret("oracle").tolist() == [[0.0] * 8] * 2
    assert result.regret("default")[0, -1] == pytest.approx(8 * 0.4)
    # Sums of Zeus and the default: 12650 12600, 21660 25200, 39185 37800, 48185 50400, 65685 63000,
    # 78285 75600, 87285 88200, 96285 100800: ahead for good from the 7th on.
    assert result.payback("zeus").tolist() == [7.0, 7.0]
    assert result.paid_back_within("zeus", 6) == 0.0
    assert result.paid_back_within("zeus", 7) == 1.0
    assert result.payback("oracle").tolist() == [1.0, 1.0]
    assert result.payback("default").tolist() == [1.0, 1.0]
    energy = np.array([12400, 6220, 14850, 6000, 15000, 12600, 6000, 6000.0])
    assert result.total_savings("zeus")[0] == pytest.approx(1 - energy.sum() / (8 * 12600))
    assert result.savings("zeus", last=2)[0] == pytest.approx(1 - 6000 / 12600)
    assert result.savings("zeus")[0] == pytest.approx(1 - energy[-5:].mean() / 12600)
    with pytest.raises(SpecError, match="within: found 9; the study has 8 recurrences"):
        result.paid_back_within("zeus", 9)


def test_what_never_pays_back_is_infinite() -> None:
    at_optimum = replace(TOY, default_batch_size=16)
    result = study(at_optimum, ["zeus"], seeds=[1], recurrences=5)
    assert result.payback("zeus").tolist() == [math.inf]
    assert result.paid_back_within("zeus", 5) == 0.0


def test_seeds_that_give_up_are_counted_and_left_out() -> None:
    # One run in two of size 32 misses the target, and a first run that does ends a simulation.
    rare = replace(
        TOY, job=replace(JOB, max_epochs=12), epochs={**TOY.epochs, 32: np.array([9.0, 13.0])}
    )
    result = study(rare, ["zeus"], seeds=range(1, 31), recurrences=4)
    one = result.replications["zeus"]
    assert 0 < len(one.gave_up) < 30
    assert sorted([*one.seeds, *one.gave_up]) == list(range(1, 31))
    assert any("gave up and are left out: the very first run" in note for note in one.notes)
    both = set(one.seeds) & set(result.replications["default"].seeds)
    assert len(result.savings("zeus")) == len(both)
    hopeless = replace(rare, epochs={**TOY.epochs, 32: np.array([13.0, 13.0])})
    with pytest.raises(InfeasibleError, match="under every seed: the very first run"):
        study(hopeless, ["zeus"], seeds=[1, 2])


def test_notes_say_in_how_many_seeds() -> None:
    result = study(TOY, ["zeus"], seeds=[1, 2, 3], recurrences=6, beta=0.9)
    (note,) = result.replications["zeus"].notes
    assert note.endswith("(3 of 3 seeds)")


def test_wrong_studies_are_refused() -> None:
    with pytest.raises(SpecError, match="'zeus' twice"):
        study(TOY, ["zeus", "zeus"])
    with pytest.raises(SpecError, match="each once"):
        study(TOY, seeds=[1, 1])
    with pytest.raises(SpecError, match="at least one"):
        study(TOY, seeds=[])


def test_a_band_of_infinities_stays_one() -> None:
    points = band(np.array([1.0, 2.0, math.inf, math.inf]))
    assert (points["p10"], points["p50"], points["p90"]) == (1.0, 2.0, math.inf)
    assert all(math.isnan(value) for value in band(np.array([])).values())


@pytest.mark.slow
@pytest.mark.data
def test_published_savings(measured: Callable[[str, str], Workload]) -> None:
    """Thirty seeds on a V100 at eta 0.5: the last five recurrences save 15.3 to 75.8 %."""
    saved = {}
    for name in NAMES:
        result = study(measured("v100", name), ["zeus"], seeds=range(1, 31))
        saved[name] = float(result.savings("zeus").mean())
        assert not result.replications["zeus"].gave_up
    assert min(saved.values()) >= 0.153, saved
    assert max(saved.values()) <= 0.758, saved


@pytest.mark.sample(1)
@pytest.mark.data
@pytest.mark.parametrize("gpu", ["v100", "a40", "p100", "rtx6000"])
def test_zeus_settles_at_the_optimum_or_a_near_tie(
    measured: Callable[[str, str], Workload], gpu: str
) -> None:
    for name in NAMES:
        result = study(measured(gpu, name), ["zeus"], seeds=range(10))
        last = result.replications["zeus"].values["cost_j"][:, -10:]
        assert float(last.mean()) == pytest.approx(result.best.cost_j, rel=0.04), name
    # The published ones: (128, 100 W) on cifar100 and (48, 150 W) on librispeech.
    if gpu == "v100":
        for name, best in (("cifar100", (128, 100)), ("librispeech", (48, 150))):
            settled = study(measured(gpu, name), ["zeus"], seeds=range(10)).replications["zeus"]
            assert settled.settled.count(best) >= 8


@pytest.mark.data
def test_zeus_against_grid_search(measured: Callable[[str, str], Workload]) -> None:
    regret, payback = {}, {}
    for name in ("cifar100", "librispeech", "movielens-1m", "imagenet"):
        result = study(measured("v100", name), ["zeus", "grid"], seeds=range(1, 11))
        regret[name] = {one: float(result.regret(one)[:, -1].mean()) for one in result.replications}
        payback[name] = result.payback("zeus")
        assert regret[name]["zeus"] < 0.4 * regret[name]["grid"]
    # Sizes that never converge run to the end under grid search: many times the default's cost.
    assert regret["movielens-1m"]["grid"] > 10 * regret["movielens-1m"]["default"]
    assert np.all(payback["cifar100"] < 10)
    # The default is close to the optimum: exploring does not repay within the paper's horizon.
    assert np.median(payback["imagenet"]) == math.inf


@pytest.mark.data
def test_a_threshold_of_two_is_a_good_compromise(measured: Callable[[str, str], Workload]) -> None:
    def regret(beta: float) -> float:
        result = study(measured("v100", "movielens-1m"), ["zeus"], seeds=range(5), beta=beta)
        return float(result.regret("zeus")[:, -1].mean())

    compromise = regret(2.0)
    assert regret(5.0) > compromise
    assert regret(math.inf) > 3 * compromise
