"""Numbers that cannot be had, by the reason why: short enough to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.report.format import count

if TYPE_CHECKING:
    from collections.abc import Iterable

#: So many labels stand in a sentence; of more only their number and their groups.
FEW = 2


@dataclass(frozen=True)
class Unanswered:
    """What cannot be had for one reason.

    Attributes:
        reason: why, in a sentence without its full stop, its first letter a capital.
        labels: what, each once.
        groups: headings that these numbers stand under elsewhere.
    """

    reason: str
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    @property
    def short(self) -> str:
        """The reason and what it keeps from being had: a few labels, or how many of what."""
        if len(self.labels) <= FEW:
            return self.full
        return f"{self.reason}: {count(len(self.labels))} numbers ({_joined(self.groups)})."

    @property
    def full(self) -> str:
        """The reason and every number that it keeps from being had."""
        return f"{self.reason}: {'; '.join(self.labels)}."


def unanswered(entries: Iterable[tuple[str, str, str]]) -> list[Unanswered]:
    """Return what cannot be had, by reason, reasons in order of appearance.

    Args:
        entries: (reason, group, label) of each number.
    """
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for reason, group, label in entries:
        text = reason.strip().rstrip(".")
        labels, groups = found.setdefault(text[:1].upper() + text[1:], ({}, {}))
        labels[label] = None
        groups[group] = None
    return [
        Unanswered(reason, tuple(labels), tuple(groups))
        for reason, (labels, groups) in found.items()
    ]


def in_short(found: Iterable[Unanswered], never: str) -> list[str]:
    """Return a sentence a reason; those for which no trace has some group's numbers are one.

    Args:
        found: what cannot be had.
        never: the group whose numbers no trace has.
    """
    every = list(found)
    sentences = [one.short for one in every if one.groups != (never,)]
    missing = sum(len(one.labels) for one in every if one.groups == (never,))
    if missing:
        group = _joined((never,))
        sentences.append(f"Not in the tables of any trace: {count(missing)} numbers ({group}).")
    return sentences


def _joined(groups: tuple[str, ...]) -> str:
    lowered = [group[:1].lower() + group[1:] for group in groups]
    return lowered[0] if len(lowered) == 1 else f"{', '.join(lowered[:-1])} and {lowered[-1]}"
