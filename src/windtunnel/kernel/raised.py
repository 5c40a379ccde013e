"""`Raised`: what Python has raised inside the loop, which itself raises nothing."""

from __future__ import annotations

from typing import Any

import cython


@cython.final
@cython.cclass
class Raised:
    """Calls Python from the loop, and keeps what a call raises until the loop is back in Python.

    An interrupt may come at any instruction of Python's, the first of a function included: this
    is compiled, so that none comes here.

    Attributes:
        error: what was raised first; None = nothing.
    """

    error: object

    def __init__(self) -> None:
        self.error = None

    def call(self, function: object, arguments: tuple) -> object:
        """Return what a function returns; None if it raises something, or one before it did."""
        if self.error is not None:
            return None
        try:
            return function(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised by `raise_kept`
            self.error = error
            return None

    @cython.cfunc
    def raise_kept(self) -> cython.void:
        """Raise what was kept."""
        error: Any = self.error
        if error is not None:
            self.error = None
            raise error
