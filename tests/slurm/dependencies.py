"""Whether what a job waits for has happened: `sbatch --dependency`, as its manual page says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from records import Record


class Dependencies:
    """The dependencies of a record's jobs.

    An array's job stands for all its tasks: it has ended when they all have, and well if they all
    did.
    """

    def __init__(self, record: Record) -> None:
        self.words = [work["dependency"] for work in record.work]
        self.names: dict[str, list[int]] = {}
        for job, row in enumerate(record.rows):
            self.names.setdefault(row["job"], []).append(job)
        self.before: list[list[int]] = [[] for _ in record.rows]
        same: dict[tuple[str, str], list[int]] = {}
        for job in sorted(range(len(record.rows)), key=lambda j: record.requests[j].identity):
            work = record.work[job]
            named = re.search(r"(?:--job-name=|-J\s*)(\S+)", work["extra"])
            others = same.setdefault((work["user"], named[1] if named else work["job"]), [])
            self.before[job] = [o for o in others if record.work[o]["job"] != work["job"]]
            others.append(job)

    def met(
        self, job: int, has_begun: Callable[[int], bool], ended: Callable[[int], bool | None]
    ) -> bool | None:
        """Return whether a job may run by what it waits for; None = not yet, False = never.

        Args:
            job: its number.
            has_begun: whether another has started.
            ended: whether another has ended well; None = it has not ended.
        """
        words = self.words[job]
        if not words:
            return True
        found: list[bool | None] = []
        for condition in re.split(r"[,?]", words):
            kind, *names = condition.split(":")
            if kind == "singleton":
                found.append(None if any(ended(o) is None for o in self.before[job]) else True)
                continue
            for name in names:
                tasks = self.names.get(name, [])
                found.append(self._one(kind, tasks, has_begun, ended))
        first, last = (True, False) if "?" in words else (False, True)
        if first in found:
            return first
        return None if None in found else last

    @staticmethod
    def _one(
        kind: str,
        tasks: list[int],
        has_begun: Callable[[int], bool],
        ended: Callable[[int], bool | None],
    ) -> bool | None:
        if kind == "after":
            return True if all(has_begun(task) for task in tasks) else None
        ends = [ended(task) for task in tasks]
        if None in ends:
            return None
        return kind == "afterany" or all(ends) == (kind == "afterok")
