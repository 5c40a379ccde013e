"""``gavel:<policy>``: an allocation policy as the policy of a run, with its parameters.

The shares are computed by `windtunnel.policies.gavel.allocate`; a mechanism makes them real. The
policy itself is only a description: `windtunnel.study.gavel_rounds` runs it.
"""

from __future__ import annotations

from typing import Any

from windtunnel.checked import checked_choice, checked_number
from windtunnel.errors import SpecError
from windtunnel.policies.described import Described
from windtunnel.policies.filling import checked_fill
from windtunnel.policies.gavel.catalogue import POLICIES

PREFIX = "gavel:"
#: How shares become GPUs: by deficits (`windtunnel.policies.gavel.rounds`), as published, exactly.
MECHANISMS: tuple[str, ...] = ("deficit", "published", "ideal")
#: Rules inside an entity.
INNER: tuple[str, ...] = ("fairness", "fifo")
#: Which of equally good shares; "" = as the mechanism has it.
CHOICES: tuple[str, ...] = ("", "vertex", "centre")


class GavelPolicy(Described):
    """One of Gavel's policies, run in rounds.

    Args:
        allocation: the published name (`windtunnel.gavel.POLICIES`).
        round: seconds a round.
        mechanism: one of `MECHANISMS`.
        gap: published mechanism: least seconds between two decisions on shares.
        partitions: parts in which to decide (POP).
        alpha: AlloX's share of the jobs looked at.
        prices: dollars per GPU hour of the cluster's types, by name; () = those in the
            published code (`windtunnel.policies.gavel.totals.DEFAULT_COSTS`).
        by: the jobs' column that names their entity, for hierarchical policies.
        weights: of the entities in order of their names; () = all 1.
        inner: rule inside all entities.
        choice: among equally good shares, ``vertex`` or ``centre``
            (`windtunnel.policies.gavel.allocate`); "" = ``centre`` for policies that do not know
            speeds in the published mechanism, else ``vertex``.
        fill: ``deficit`` mechanism: who may take free GPUs between two rounds, of
            `windtunnel.policies.filling.FILLS`; "" = ``false``.

    Raises:
        SpecError: a parameter is out of range.
    """

    prefix = PREFIX
    words = Described.words | {"mechanism", "by", "inner", "choice"}

    def __init__(
        self,
        allocation: str,
        *,
        round: float = 360.0,  # noqa: A002 - the field's word
        mechanism: str = "deficit",
        gap: float = 1920.0,
        partitions: float = 1,
        alpha: float = 1.0,
        prices: tuple[float, ...] = (),
        by: str = "vc",
        weights: tuple[float, ...] = (),
        inner: str = "fairness",
        choice: str = "",
        fill: str | bool = "",
    ) -> None:
        where = f"policy {PREFIX}{allocation}"
        if allocation not in POLICIES:
            raise SpecError.unknown("policy", f"{PREFIX}{allocation}", _names())
        words = {"mechanism": mechanism, "inner": inner, "choice": choice}
        for (name, word), known in zip(words.items(), (MECHANISMS, INNER, CHOICES), strict=True):
            checked_choice(f"{where}: {name}", word, known)
        if choice == "centre" and not POLICIES[allocation].leaves_open:
            raise SpecError(
                f"{where}: choice", "only programs that do not know speeds have a centre."
            )
        _check_parts(where, allocation, partitions, alpha)
        for name, value in (("round", round), ("gap", gap)):
            checked_number(f"{where}: {name}", value, "seconds > 0", above=0)
        for name, values in (("prices", prices), ("weights", weights)):
            if any(not 0 < value < float("inf") for value in values):
                raise SpecError(f"{where}: {name}", f"found {values}; expected numbers > 0.")
        self.allocation, self.mechanism = allocation, mechanism
        self.length, self.gap = float(round), float(gap)
        self.partitions, self.alpha = int(partitions), float(alpha)
        self.prices, self.entities_by = tuple(prices), by
        self.weights, self.inner = tuple(weights), inner
        self.choice = choice
        self.filling = checked_fill(where, fill)
        self.text = f"{PREFIX}{allocation}"

    @classmethod
    def value(cls, where: str, parameter: str, text: str) -> Any:
        """Return a parameter's value: a word, a number, or several joined by ``/``.

        Raises:
            SpecError: it should be a number, and is none.
        """
        if parameter in {"prices", "weights"}:
            number = super().value
            return tuple(number(where, parameter, one) for one in text.split("/"))
        return super().value(where, parameter, text)


def _check_parts(where: str, allocation: str, partitions: float, alpha: float) -> None:
    """Check in how many parts is decided, and on which part of the jobs.

    Raises:
        SpecError: a number is out of range, or the policy looks at all jobs.
    """
    if not 1 <= partitions < float("inf") or partitions != int(partitions):
        raise SpecError(f"{where}: partitions", f"found {partitions:g}; expected 1, 2, 3 ...")
    checked_number(f"{where}: alpha", alpha, "a number > 0 and <= 1", above=0, most=1)
    if alpha != 1 and allocation != "allox":
        raise SpecError(f"{where}: alpha", "only allox looks at a part of the jobs.")


def _names() -> list[str]:
    return [PREFIX + name for name in POLICIES]
