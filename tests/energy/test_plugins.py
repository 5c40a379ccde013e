"""Optimisers of a user's own: found, checked, and never shared between simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from toy import TOY

from windtunnel.energy import BatchSizeOptimizer, PowerLimitOptimizer, Trial, simulate_recurrences
from windtunnel.energy.catalogue import resolve_optimizer, resolve_power_limits
from windtunnel.errors import PolicyError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.energy.costs import Profile

PLUGIN = '''
from windtunnel.energy import BatchSizeOptimizer, PowerLimitOptimizer


class EpsilonGreedy(BatchSizeOptimizer):
    """Mostly the cheapest size so far, now and then the next one in turn."""

    name = "epsilon-greedy"

    def begin(self, workload, pricing, seed):
        super().begin(workload, pricing, seed)
        self.cost = {}

    def predict(self):
        untried = [b for b in self.workload.batch_sizes[::-1] if b not in self.cost]
        return untried[0] if untried else min(self.cost, key=self.cost.get)

    def observe(self, trial):
        self.cost[trial.batch_size] = trial.cost


class Middle(PowerLimitOptimizer):
    def predict(self, batch_size):
        return sorted(self.workload.sweeps[batch_size].power_limits)[0]


def largest(workload, trials):
    return workload.batch_sizes[-1]


word = "zeus"
'''


def test_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site_energy_plugin.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    found = simulate_recurrences(
        TOY,
        "site_energy_plugin:EpsilonGreedy",
        power_limits="site_energy_plugin:Middle",
        recurrences=5,
        beta=9.0,
    )
    assert [run.batch_size for _, run in found.runs] == [32, 16, 8, 16, 16]
    assert {run.power_limit for _, run in found.runs} == {100}
    assert found.settings["optimizer"] == "epsilon-greedy"
    assert found.settings["power_limits"] == "Middle"
    assert resolve_optimizer("site_energy_plugin:largest").name == "largest"
    with pytest.raises(SpecError, match="Did you mean 'largest'"):
        resolve_optimizer("site_energy_plugin:lagrest")
    with pytest.raises(SpecError, match="is a text; expected an optimiser"):
        resolve_optimizer("site_energy_plugin:word")


class Counting(BatchSizeOptimizer):
    """Counts what it hears."""

    def __init__(self, start: int = 32) -> None:
        self.start, self.heard = start, 0

    def predict(self) -> int:
        return self.start

    def observe(self, trial: Trial) -> None:
        self.heard += 1


def test_an_object_serves_any_number_of_simulations() -> None:
    mine = Counting(16)
    for _ in range(2):
        result = simulate_recurrences(TOY, mine, recurrences=3)
        assert [run.batch_size for _, run in result.runs] == [16, 16, 16]
    assert mine.heard == 0
    assert simulate_recurrences(TOY, Counting, recurrences=1).settings["optimizer"] == "Counting"


class Needy(BatchSizeOptimizer):
    def __init__(self, what: int) -> None:
        self.what = what


class Undecided(PowerLimitOptimizer):
    """Asks for a profile and then again."""

    def __init__(self) -> None:
        self.profiles: list[Profile] = []

    def predict(self, batch_size: int) -> int | None:
        return None

    def observe(self, batch_size: int, profile: Profile) -> None:
        self.profiles.append(profile)


@pytest.mark.parametrize("wrong", [3, object(), None, str])
def test_what_is_no_optimizer_is_refused(wrong: Any) -> None:
    with pytest.raises(PolicyError, match="expected an optimiser's name"):
        resolve_optimizer(wrong)
    with pytest.raises(PolicyError, match="expected a power-limit optimiser's name"):
        resolve_power_limits(wrong)


def test_wrong_optimizers_are_refused() -> None:
    with pytest.raises(PolicyError, match="needs arguments"):
        resolve_optimizer(Needy)
    with pytest.raises(PolicyError, match=r"Undecided.*proposed None W at batch size 32"):
        simulate_recurrences(TOY, power_limits=Undecided())
