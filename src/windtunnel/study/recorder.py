"""`record`: where the decisions of a run are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome


def check_record(record: Any, *, several: bool = False) -> None:
    """Check where decisions go: a file, True = they stay in memory, None = nobody wants them.

    Args:
        record: as given.
        several: it is one of several runs, which cannot share a file.

    Raises:
        SpecError: it is none of these, or a file of another kind.
    """
    if record is None or record is True:
        return
    if not isinstance(record, str | Path) or Path(record).suffix != ".parquet":
        raise SpecError("record", f"found {quote(record)}; expected a file such as run.parquet.")
    if several:
        raise SpecError("record", "a file holds one run; simulate each policy with its own.")


def keep_record(outcome: Outcome, record: Any) -> None:
    """Write the decisions of a run to a file, if one was asked for.

    Raises:
        SpecError: the run has no decisions of its own to record.
        OSError: the file cannot be written; nothing is left behind.
    """
    if record is None:
        return
    if outcome.flight.verdicts is None:
        message = "the published simulator's own loop tells no reasons; fly without compat."
        raise SpecError("record", message)
    if record is not True:
        from windtunnel.sim.observe.recording_file import write

        write(str(record), outcome)
