"""Infinity, and what is not known."""

from __future__ import annotations

import cython

ENDLESS = cython.declare(cython.double, float("inf"))
UNKNOWN = cython.declare(cython.double, float("nan"))
