"""The command group: commands loaded on first use, and every failure reported in one message.

Exit codes: 0 done; 1 the reader of our output went away, or a fault of windtunnel itself; 2 wrong
input, of whatever kind; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from windtunnel.users_code import raised_by_user

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Exit code of a fault that is ours, not the input's.
FAULT = 1
#: Exit code of wrong input.
WRONG_INPUT = 2
#: Names longer than this are cut in a message, as are messages longer than that.
_LONGEST, _WHOLE = 400, 8000
#: Exit code after Ctrl-C.
INTERRUPTED = 130


@dataclass
class Session:
    """What the whole process knows, shared by the group and its commands.

    Attributes:
        debug: show tracebacks.
        words: the command line, without the program's name.
    """

    debug: bool = False
    words: tuple[str, ...] = ()


class LazyGroup(click.Group):
    """A group whose commands are imported when they are named.

    Args:
        homes: command name -> module that defines it under the same name, in order of help.
        options: as for `click.Group`.
    """

    def __init__(self, *args: Any, homes: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._homes = dict(homes)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands' names in the order of the help."""
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, imported now; None where there is none of this name."""
        home = self._homes.get(cmd_name)
        if home is None:
            return None
        command: click.Command = getattr(importlib.import_module(home), cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name.

        Raises:
            click.UsageError: there is none; the nearest is suggested.
        """
        name = args[0]
        if not name.startswith("-") and name not in self._homes:
            from windtunnel.errors import nearest, quote

            ctx.fail(
                f"No such command {quote(name)}.{nearest(name, self._homes)} "
                f"Commands: {', '.join(self._homes)}."
            )
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run the group and exit; no traceback without ``--debug``.

        Raises:
            SystemExit: always, with one of this module's exit codes.
        """
        _printable_streams()
        session = Session(words=tuple(sys.argv[1:] if args is None else args))
        extra |= {"standalone_mode": False, "obj": session}
        code = 0
        try:
            result = super().main(args, *rest, **extra)
            code = result if isinstance(result, int) else 0
        except click.Abort as error:
            if isinstance(error.__cause__, EOFError):
                raise SystemExit(_tell(error.__cause__, debug=session.debug)) from error
            click.echo("Interrupted.", err=True)
            code = INTERRUPTED
        except SystemExit as error:
            if raised_by_user(error) is None:  # click leaves so where a reader has gone away
                raise
            code = _tell(error, debug=session.debug)
        except Exception as error:  # noqa: BLE001 - the one place where a run's failure ends
            code = _tell(error, debug=session.debug)
        raise SystemExit(code)


def _printable_streams() -> None:
    """Let a terminal that lacks a character show another one instead of ending the run.

    A stream that is closed (``>&-``) leads nowhere; otherwise the next file that is opened would
    get its number, and what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _tell(error: Exception | SystemExit, *, debug: bool) -> int:
    """Print what went wrong on stderr, once; return the exit code."""
    from windtunnel.errors import WindtunnelError

    if debug:
        import traceback

        traceback.print_exception(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later
        click.echo(str(error), err=True)
        return WRONG_INPUT
    more = "" if debug else "\nRun it again with --debug for details."
    code = WRONG_INPUT
    if isinstance(error, click.ClickException):
        message, more = _moved_option(error) or error.format_message(), ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            more = f"\nTry '{error.ctx.command_path} --help' for help."
    elif isinstance(error, WindtunnelError):
        message, more = str(error), ""
    elif (raised := raised_by_user(error)) is not None:
        message = raised
    elif isinstance(error, OSError):
        message, more = _system_words(error), ""
    elif isinstance(error, MemoryError):
        message, more = "there is not enough memory for this trace and cluster.", ""
    else:
        message, code = f"a fault in windtunnel: {type(error).__name__}: {error}", FAULT
    click.echo(f"Error: {harmless(_short(message))}{more}", err=True)
    return code


def _moved_option(error: click.ClickException) -> str:
    """Return where an option that commands with a trace had stands now; empty where it is none."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    from windtunnel.traces.trace_name import MOVED

    word = error.option_name.removeprefix("--").replace("-", "_")
    has_trace = any(param.name == "reader" for param in error.ctx.command.params)
    return f"{error.option_name}: {MOVED[word]}" if has_trace and word in MOVED else ""


def _system_words(error: OSError) -> str:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
    where = error.filename or ("standard output" if full else "")
    return f"{where}{': ' if where else ''}{error.strerror or error}."


def _short(text: str) -> str:
    """Return a message with long names cut, and cut itself where it is longer than a screen."""
    text = re.sub(rf"\S{{{_LONGEST},}}", lambda m: f"{m[0][:200]}...{m[0][-60:]}", text)
    return text if len(text) <= _WHOLE else f"{text[:_WHOLE]} ... ({len(text):,} characters)"


def harmless(text: str) -> str:
    r"""Return ``text`` with everything that a terminal would obey escaped, line breaks kept.

    >>> harmless("a\x1b[31m\nb")
    'a\\x1b[31m\nb'
    """
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)
