"""Every command of the guide to serving runs as typed, on files that the guide itself makes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from windtunnel.cli.root import windtunnel

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "serving.md"
_COMMAND = re.compile(r"^    windtunnel (serving .*)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(python|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: A block of TOML may begin with the name of its file.
_NAME = re.compile(r"# (\w+\.toml)\n")


def _run(title: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a section: its Python blocks, its TOML as the file it names, then its commands."""
    text = GUIDE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    monkeypatch.chdir(folder)
    for language, block in _BLOCK.findall(text):
        if language == "toml":
            named = _NAME.match(block)
            file = Path(named[1] if named else "workload.toml")
            file.write_text(block, encoding="utf-8")
        else:
            exec(compile(block, str(GUIDE), "exec"), {"__name__": "page"})  # noqa: S102 - our own
    commands = _COMMAND.findall(text)
    assert len(commands) >= 5
    for command in commands:
        ran = CliRunner().invoke(windtunnel, shlex.split(command))
        assert ran.exit_code == 0, f"{command}\n{ran.output}"


def test_language_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run("Language models", tmp_path, monkeypatch)


@pytest.mark.slow
def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run("On the command line", tmp_path, monkeypatch)
