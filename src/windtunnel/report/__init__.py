"""Reports: charts, tables and pages, each a function of outcomes. Importing this costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.report.page import comparison_page, write_page

__all__ = ["comparison_page", "write_page"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("windtunnel.report.page"), name)
