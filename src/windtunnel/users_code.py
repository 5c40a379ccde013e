"""Whose fault an exception is: windtunnel's, or that of code of the user's own."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.errors import WindtunnelError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What of a policy made of a function calls it.
_OF_FUNCTIONS = frozenset({"rank", "key", "decide"})


def raised_by_user(error: BaseException) -> str | None:
    """Say what of the user's own (``module:name``, a plug-in) raised an error; None = nothing."""
    where = _place(error)
    if where is None:
        return None
    when = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"{where} raised {type(error).__name__} ({error}).{when}"


def note_instant(error: BaseException, policy: str, now: float, job: str | None = None) -> None:
    """Let an error say that it is of a policy that was asked at ``now`` (s), about a job or not.

    Errors of windtunnel's own say so already.
    """
    if isinstance(error, WindtunnelError):
        return
    about = "" if job is None else f" for the key of job {quote(job)}"
    error.add_note(f"Policy {quote(policy)} was asked at t={now:.15g} s{about}.")


def _place(error: BaseException) -> str | None:
    """Return where the user's own code is in an error's traceback, first; None = nowhere."""
    places = sysconfig.get_paths()
    home = Path(__file__).parent
    libraries = [Path(places[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    entered = False
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(home):
            called = type(frame.f_locals.get("self")).__name__
            entered = called == "FunctionPolicy" and frame.f_code.co_name in _OF_FUNCTIONS
        elif entered or not _is_part(file, libraries):
            return f"{file.name}, line {line},"
    return "the function that the policy names" if entered else None


def _is_part(file: Path, libraries: Sequence[Path]) -> bool:
    """Return whether a frame's file is a library's, made on the way, or of a compiled module."""
    return not file.is_absolute() or any(map(file.is_relative_to, libraries))
