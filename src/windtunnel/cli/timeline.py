"""``simulate --timeline``: who ran where when, as a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace

_PAGES = (".html", ".htm")


@dataclass(frozen=True)
class TimelineWish:
    """What the user asked for.

    Attributes:
        path: the file; None = no time-line.
        window: from when until when, s; None = all.
    """

    path: Path | None
    window: tuple[float, float] | None

    @classmethod
    def of(cls, path: Path | None, window: tuple[float, float] | None, trace: str) -> TimelineWish:
        """Return the wish that a command's options make, checked before anything is computed.

        Raises:
            SpecError: the file cannot be written, or there is a window without one.
        """
        from windtunnel.cli.opening import check_out
        from windtunnel.errors import SpecError
        from windtunnel.report.timeline import ENDINGS

        if path is None and window is not None:
            raise SpecError("--timeline-window", "expected --timeline FILE beside it.")
        check_out(path, (*ENDINGS, *_PAGES), trace, "--timeline")
        return cls(path, window)

    def write(self, outcome: Outcome, trace: Trace, *, title: str) -> tuple[str, ...]:
        """Write the file, if one was asked for; return what its reader must know.

        Raises:
            OSError: it cannot be written; nothing is left behind.
        """
        from windtunnel.cli.screen import progress

        if self.path is None:
            return ()
        with progress("Drawing the time-line"):
            if self.path.suffix.lower() in _PAGES:
                from windtunnel.report.occupancy import occupancy_page
                from windtunnel.report.page import write_page

                page, notes = occupancy_page(outcome, title, self.window)
                write_page(self.path, page)
                return notes
            from windtunnel.report.timeline import timeline, write_timeline

            chosen = timeline(outcome, window=self.window, epoch=trace.metadata.epoch or "")
            write_timeline(self.path, chosen)
            return chosen.notes
