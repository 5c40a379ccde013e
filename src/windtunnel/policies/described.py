"""Policies that are only a description: a name with parameters, which `windtunnel.study` runs."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.plugins import parameters
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Start


class Described(Policy):
    """A policy that an engine cannot ask by itself.

    Attributes:
        prefix: what its names begin with: ``gavel:``.
        runs: how it runs, for who asks it nonetheless.
        text: the policy as it was asked for.
    """

    prefix: ClassVar[str]
    runs: ClassVar[str] = "in rounds only"
    preemptive = True
    queueing = "skip"
    text: str

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the policy that ``prefix:name[:parameter=value...]`` asks for.

        Raises:
            SpecError: no such policy or parameter, or the value is none for it.
        """
        name, *words = text[len(cls.prefix) :].split(":")
        where = f"policy {text}"
        _, *known = inspect.signature(cls).parameters
        given = parameters(words, known, where=where)
        values = {one: cls.value(where, one, said) for one, said in given.items()}
        made = cls(name, **values)  # type: ignore[call-arg] # each takes a name and parameters
        made.text = cls.prefix + ":".join([name, *words])
        return made

    @classmethod
    def value(cls, where: str, parameter: str, said: str) -> Any:
        """Return a parameter's value as the policy takes it: a number.

        Raises:
            SpecError: it is none.
        """
        try:
            return float(said)
        except ValueError as error:
            raise SpecError(
                where, f"found {parameter}={quote(said)}; expected a number."
            ) from error

    @property
    def label(self) -> str:
        """The policy as it was asked for."""
        return self.text

    @property
    def tier(self) -> int:
        """3: it decides on everything."""
        return 3

    def decide(
        self,
        now: float,  # noqa: ARG002 - one contract
        queue: Any,  # noqa: ARG002 - ditto
        cluster: Any,  # noqa: ARG002 - ditto
    ) -> Iterable[Start]:
        """Refuse to: it is not an engine's decisions that it is made of.

        Raises:
            PolicyError: always.
        """
        raise PolicyError(self.label, f"runs {self.runs}: see windtunnel.simulate")
