"""``windtunnel report``: what an operator asks of a log, answered in tables and on a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import lazy_group

if TYPE_CHECKING:
    import click


class _Report(LazyGroup):
    """The group, to which a log's name stands for `report log`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; a file or a trace is `log`'s."""
        if args[0] not in self.list_commands(ctx) and _is_trace(args[0]):
            args = ["log", *args]
        return super().resolve_command(ctx, args)


def _is_trace(word: str) -> bool:
    """Return whether a word is a trace's name or a file's, or stands for standard input."""
    from windtunnel.errors import WindtunnelError
    from windtunnel.traces.registry import PUBLISHED
    from windtunnel.traces.trace_name import TraceName

    try:
        name = TraceName.parse(word)
    except WindtunnelError:
        return False
    is_named = name.is_made or name.base.lower().removesuffix(":default") in PUBLISHED
    is_path = "/" in name.base or bool(Path(name.base).suffix)  # if only by intent
    return word == "-" or is_named or is_path or Path(name.base).exists()


@lazy_group(
    "An operator's questions: waste, goodput, waits and their causes, cost.",
    _Report,
    log="report_log",
    waste="report_log",
    goodput="report_log",
    queue="report_log",
    cost="report_cost",
)
def report() -> None:
    """Answer an operator's questions of a log: where GPU hours went, why jobs waited, who pays."""
