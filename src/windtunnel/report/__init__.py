"""Reports: charts, tables and pages, each a function of outcomes. Importing this costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.report.page import comparison_page
    from windtunnel.report.result_page import write_page

__all__ = ["comparison_page", "write_page"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "page" if name == "comparison_page" else "result_page"
    return getattr(import_module(f"windtunnel.report.{home}"), name)
