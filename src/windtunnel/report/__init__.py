"""Reports: charts, tables and pages, each a function of outcomes. Importing this costs nothing."""

from windtunnel.report.page import comparison_page, write_page

__all__ = ["comparison_page", "write_page"]
