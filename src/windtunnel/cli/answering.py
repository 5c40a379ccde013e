"""From an answer to the terminal, to JSON and to a page: what the operators' commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.report.answer import Answer

#: Endings of a page's name.
PAGE_ENDINGS: tuple[str, ...] = (".html", ".htm")


def tell(
    answer: Answer,
    data: dict[str, Any],
    *,
    out: Path | None,
    command: str,
    as_json: bool,
    show: bool,
) -> None:
    """Write the page where it is asked for, and print the answer.

    Args:
        answer: for people.
        data: for ``--json``; ``headline``, ``notes``, ``command`` and ``page`` are added.
        out: the page's file; None = none is wanted.
        command: what gives the answer again.
        as_json: print ``data`` and nothing else.
        show: show progress.

    Raises:
        OSError: the page cannot be written.
    """
    from windtunnel.cli.screen import progress

    if out is not None:
        from windtunnel.report.answer_page import answer_page
        from windtunnel.report.page import write_page

        with progress("Drawing the page", show=show):
            write_page(out, answer_page(answer, command=command))
    if as_json:
        from windtunnel.cli.machine import print_json

        told = {"headline": answer.headline, "notes": [*answer.cautions, *answer.notes]}
        print_json({**data, **told, "command": command, "page": out and str(out)})
        return
    _print(answer, command, out)


def _print(answer: Answer, command: str, out: Path | None) -> None:
    from windtunnel.cli.screen import bullets, facts, heading, line, screen
    from windtunnel.report.answer_terminal import facts_table, rich_table

    console = screen()
    heading(console, answer.title)
    console.print(line(answer.headline, 2000))
    bullets(console, "Mind", answer.cautions)
    if answer.facts:
        console.print()
        console.print(facts_table(answer))
    for part in answer.parts:
        if part.tells:
            heading(console, part.title)
            console.print(line(part.lead, 2000))
        for caption, table in part.tables:
            heading(console, caption)
            console.print(rich_table(table))
    bullets(console, "Notes", answer.notes)
    console.print()
    facts(console, [("again with", command)])
    if out is not None:
        console.print()
        console.print(line(f"The page is {out}"), soft_wrap=True)
