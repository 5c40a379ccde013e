"""`bench`: policies against the board, on its own seeds or on seeds that nobody has seen."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.board.cards import BASELINES, CLAIRVOYANT, ONLINE, Card, card
from windtunnel.board.confined import Process
from windtunnel.board.flights import CheatError, Flights, bounds_of, drawn_as, flights, fly
from windtunnel.board.foreknowledge import difference
from windtunnel.board.record import foreknowledge, record, recorded_flights
from windtunnel.board.scenarios import BY_NAME, SCENARIOS, SEEDS, VERSION, Scenario
from windtunnel.errors import PolicyError, SpecError
from windtunnel.policies import resolve_policy
from windtunnel.policies.catalogue import POLICIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.board.workloads import Drawn

#: Largest number of a hold-out.
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Bench:
    """What the policies that were asked for came to.

    Attributes:
        version: of the board.
        seeds: that were flown.
        holdout: the number that the seeds come from; None = they are the board's own.
        cards: of the policies asked for, in order.
        board: of the policies on the board, best first; of a hold-out the baselines alone.
    """

    version: str
    seeds: tuple[int, ...]
    holdout: int | None
    cards: tuple[Card, ...]
    board: tuple[Card, ...]

    @property
    def ranked(self) -> list[Card]:
        """All cards, online policies first, best first."""
        found = {one.policy: one for one in (*self.board, *self.cards)}
        return sorted(found.values(), key=lambda one: (one.kind != ONLINE, one.score, one.policy))


def bench(
    policies: Sequence[Any] = (),
    *,
    scenarios: Sequence[str] = (),
    holdout: int | str | None = None,
    clairvoyant: bool = False,
) -> Bench:
    """Measure policies on the board.

    Args:
        policies: names, ``module:name`` or objects; none = the board as it stands.
        scenarios: some of the scenarios by name; empty = all twelve, which alone give the score.
        holdout: a number that new seeds are drawn from; ``new`` = one that nobody knows yet; None =
            the board's own seeds.
        clairvoyant: policies named ``module:name`` may know what no scheduler does.

    Raises:
        SpecError: an unknown scenario, no number, or no policy that ``clairvoyant`` is of.
        CheatError: a policy does what it has no business with.
        ChangedScenarioError: this machine draws other jobs than were frozen.
        WindtunnelError: a policy is none, or fails.
    """
    if clairvoyant and not any(isinstance(one, str) and is_foreign(one) for one in policies):
        message = "is of policies of one's own; expected one as package.module:name."
        raise SpecError("clairvoyant", message)
    chosen = _scenarios(scenarios)
    number = holdout_number(holdout)
    seeds = SEEDS if number is None else holdout_seeds(number)
    digests = record()["digests"] if number is None else {}
    if number is None:
        bounds = {s.name: record()["bounds"][s.name] for s in chosen}
        known = {name: recorded_flights(name) for name in record()["policies"]}
    else:
        bounds = {s.name: bounds_of(s, seeds, {}) for s in chosen}
        known = {name: _flown(name, chosen, seeds, {}) for name in BASELINES}
    cards = [
        card(*_tried(policy, chosen, seeds, digests, clairvoyant), bounds=bounds, board=known)
        for policy in policies
    ]
    board = tuple(
        card(
            name,
            record()["policies"][name]["class"],
            record()["policies"][name]["found"],
            flown,
            bounds=bounds,
            board=known,
        )
        for name, flown in known.items()
    )
    return Bench(VERSION, tuple(seeds), number, tuple(cards), board)


def _tried(
    policy: Any,
    chosen: Sequence[Scenario],
    seeds: Sequence[int],
    digests: Mapping[str, str],
    clairvoyant: bool,  # noqa: FBT001 - as it was asked for
) -> tuple[str, str, str, dict[str, Flights]]:
    """Fly a policy, and return its label, its class, what was found, and its flights."""
    if not (isinstance(policy, str) and is_foreign(policy)):
        label = resolve_policy(policy).label
        flown = _flown(policy, chosen, seeds, digests)
        found = foreknowledge(policy, _of(flown))
        return label, CLAIRVOYANT if found else ONLINE, found, flown
    with Process(policy, clairvoyant=clairvoyant) as process:
        confined = process.policy()
        flown = _flown(confined, chosen, seeds, digests)
        if not _of(flown):
            why = next(iter(flown.values())).reason.removeprefix(f"policy {policy!r}: ")
            raise PolicyError(policy, f"it flies none of the scenarios: {why}")
        with Process(policy, clairvoyant=clairvoyant, hash_seed=1) as other:
            for scenario in _of(flown):
                _fly_again(drawn_as(BY_NAME[scenario], seeds[0], digests), confined, other.policy())
        if clairvoyant:
            return policy, CLAIRVOYANT, "flown as one that may know the future", flown
        found = foreknowledge(confined, _of(flown))
    if found:
        raise CheatError(policy, f"refused: {found}")
    return policy, ONLINE, "", flown


def _fly_again(drawn: Drawn, policy: Any, other: Any) -> None:
    """Fly a policy twice, in two processes."""
    found = difference(fly(drawn, policy), fly(drawn, other), math.inf)
    if found:
        raise CheatError(
            policy.label,
            f"refused: in {drawn.scenario.name}, flown twice, it did not do the same: "
            f"{found.split(' in one world')[0]} only once. It goes by a clock, by chance without a "
            "seed, or by the order of a set.",
        )


def _of(flown: Mapping[str, Flights]) -> list[str]:
    """Return the scenarios that are flown."""
    return [name for name, one in flown.items() if one.values]


def is_foreign(policy: str) -> bool:
    """Return whether a policy is named as ``module:name``: nothing that windtunnel brings."""
    if policy.lower().startswith(("gavel:", "shockwave:", "pollux:")):
        return False
    name, _ = POLICIES.split(policy)
    return POLICIES.spelt(name) is None


def _flown(
    policy: Any, chosen: Sequence[Scenario], seeds: Sequence[int], digests: Mapping[str, str]
) -> dict[str, Flights]:
    return {scenario.name: flights(scenario, seeds, policy, digests) for scenario in chosen}


def _scenarios(names: Sequence[str]) -> tuple[Scenario, ...]:
    """Return scenarios by name; none named = all."""
    for name in names:
        if name not in BY_NAME:
            raise SpecError.unknown("scenarios", name, BY_NAME)
    return tuple(s for s in SCENARIOS if s.name in names) if names else SCENARIOS


def holdout_number(asked: int | str | None) -> int | None:
    """Return the number that hold-out seeds come from.

    Raises:
        SpecError: it is neither ``new`` nor a whole number that is not negative.
    """
    if asked is None:
        return None
    if asked == "new":
        return secrets.randbelow(_MOST)
    text = str(asked)
    if not text.isdecimal() or int(text) > _MOST:
        raise SpecError("holdout", f"found {text!r}; expected new, or a number up to {_MOST}.")
    return int(text)


def holdout_seeds(number: int) -> tuple[int, ...]:
    """Return as many seeds as the board has, none of them its own."""
    drawn = np.random.default_rng(number).integers(1_000_000, _MOST, size=len(SEEDS))
    return tuple(drawn.tolist())
