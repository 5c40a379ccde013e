"""A trace in its headline numbers, beside the published ones: what was claimed, what it shows.

Every number of `windtunnel.characterize.headline_tables.CLAIMS` is computed from the tables that
the trace has. One that cannot be had is not left out: it says in a sentence what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.characterize.headline_tables import CLAIMS, Answer, HeadlineTables
from windtunnel.characterize.headlines_of_jobs import answers as answers_of_jobs
from windtunnel.characterize.headlines_of_tasks import answers as answers_of_tasks

if TYPE_CHECKING:
    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class Headline:
    """One headline number.

    Attributes:
        key: its name (`CLAIMS`).
        claim: what it says, in words.
        value: the number, in ``unit``; None where it cannot be had.
        unit: ``share`` = 0..1.
        n: rows that it is computed from; 0 where it cannot be had.
        left_out: rows that it is asked of but that lack what it needs.
        published: the published number of the PAI trace, None where there is none.
        why_not: why there is no value, in a sentence; None where there is one.
        source: where the published number is from.
    """

    key: str
    claim: str
    value: float | None
    unit: str
    n: int
    left_out: int
    published: float | None
    why_not: str | None
    source: str


def headlines(trace: Trace) -> list[Headline]:
    """Return the headline numbers of a trace, in the order of `CLAIMS`, none omitted.

    Args:
        trace: any trace; its tasks and nodes tables answer what the jobs alone cannot.
    """
    tables = HeadlineTables.of(trace)
    answers = answers_of_jobs(tables) | answers_of_tasks(tables)
    found = []
    for claim in CLAIMS:
        never = claim.not_in_tables
        answer = answers[claim.key] if never is None else Answer(None, why_not=never)
        found.append(
            Headline(
                key=claim.key,
                claim=claim.text,
                value=answer.value,
                unit=claim.unit,
                n=answer.n,
                left_out=answer.left_out,
                published=claim.published,
                why_not=answer.why_not,
                source=claim.source,
            )
        )
    return found
