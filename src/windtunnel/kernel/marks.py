"""`compiled`: marks the functions of the kernel that are C functions once it is built.

The kernel is ordinary Python with types, in Cython's pure-Python mode. At the build its modules are
joined into one unit (``build_kernel.py``), and each line ``@compiled`` becomes the three decorators
that Cython wants: a C function, without the interpreter's lock, that raises nothing.
"""

from __future__ import annotations

from typing import TypeVar

_Function = TypeVar("_Function")


def compiled(function: _Function) -> _Function:
    """Return the function itself: what the kernel does where it is not built."""
    return function
