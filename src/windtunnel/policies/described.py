"""Policies that decide nothing by themselves: what they are made into for a run does.

Some are only a description: a name with parameters, which `windtunnel.study` runs.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Self

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.plugins import parameters
from windtunnel.sim.contract import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.sim.contract import Decision


class PerRun(Policy):
    """Options of a policy, which decides within a run: ``for_run`` returns who does.

    Attributes:
        refusal: the message to who asks it nonetheless.
    """

    refusal: ClassVar[str] = "decides within a run only: see for_run(problem)"

    def decide(
        self,
        now: float,  # noqa: ARG002 - one contract
        queue: Any,  # noqa: ARG002 - ditto
        cluster: Any,  # noqa: ARG002 - ditto
    ) -> Iterable[Decision]:
        """Refuse to.

        Raises:
            PolicyError: always.
        """
        raise PolicyError(self.label, self.refusal)


class Described(PerRun):
    """A policy that an engine cannot ask by itself.

    Attributes:
        prefix: what its names begin with: ``gavel:``.
        words: parameters that are words, and not numbers.
        text: the policy as it was asked for.
    """

    prefix: ClassVar[str]
    words: ClassVar[frozenset[str]] = frozenset({"fill"})
    refusal = "runs in rounds only: see windtunnel.simulate"
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
        values = {one: cls.value(where, one, word) for one, word in given.items()}
        made = cls(name, **values)  # type: ignore[call-arg] # each takes a name and parameters
        made.text = cls.prefix + ":".join([name, *words])
        return made

    @classmethod
    def value(cls, where: str, parameter: str, text: str) -> Any:
        """Return a parameter's value as the policy takes it: a word, or else a number.

        Raises:
            SpecError: it should be a number, and is none.
        """
        if parameter in cls.words:
            return text
        try:
            return float(text)
        except ValueError as error:
            raise SpecError(
                where, f"found {parameter}={quote(text)}; expected a number."
            ) from error

    def on_engine(self, compat: str | None) -> Policy:  # noqa: ARG002 - for those that can be
        """Return what an engine can ask in its stead, itself where none can.

        Args:
            compat: whose simulator is to be followed; None = nobody's.
        """
        return self

    @property
    def label(self) -> str:
        """The policy as it was asked for."""
        return self.text
