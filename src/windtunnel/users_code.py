"""Whose fault an exception is: windtunnel's, or that of code of the user's own."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What of a policy made of a function calls it.
_OF_FUNCTIONS = frozenset({"rank", "key", "decide"})


def raised_by_user(error: BaseException) -> str | None:
    """Say what of the user's own (``module:name``, a plug-in) raised an error; None = nothing."""
    where = _place(error)
    return None if where is None else f"{where} raised {type(error).__name__} ({error})."


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
