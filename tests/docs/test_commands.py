"""Every command of the README and the docs is one, with options that it has."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_ENDS = {"&&", "|", ">", ";"}


def commands(page: Path) -> list[list[str]]:
    """Return the words of every command of a page's shell blocks, up to a pipe."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = (line for block in blocks for line in block.replace("\\\n", " ").splitlines())
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("windtunnel ")]
    return [
        words[1 : next((i for i, w in enumerate(words) if w in _ENDS), None)] for words in found
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    for words in commands(page):
        command: click.Command | None = windtunnel
        context = click.Context(windtunnel)
        at = 0
        while isinstance(command, click.Group) and at < len(words):
            command = command.get_command(context, words[at])
            at += 1
        assert command is not None, words
        known = {name for given in command.params for name in (*given.opts, *given.secondary_opts)}
        asked = {word.partition("=")[0] for word in words[at:] if word.startswith("--")}
        assert asked <= known | {"--help"}, words


def test_the_command_that_tries_a_wheel_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    words = shlex.split(project["tool"]["cibuildwheel"]["test-command"])
    ran = CliRunner().invoke(windtunnel, words[1:])
    assert (words[0], ran.exit_code) == ("windtunnel", 0), ran.output
