"""Every command of the README and the docs is one, with options that it has, and runs."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from page_files import FILES

from windtunnel.cli.root import windtunnel
from windtunnel.plugins import registrations_forgotten

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
#: A command in a block of the shell: what stands behind two blanks says what it is for.
_COMMAND = re.compile(r"(?:\$ )?(?:\.venv/bin/)?windtunnel (.*?)(?:  .*)?")
#: One in a sentence.
_INLINE = re.compile(r"`windtunnel ([^`]+)`")
#: Pages whose commands take seconds; those of the others run at every change.
SLOW = {
    "README.md",
    "docs/bench.md",
    "docs/guides/characterise.md",
    "docs/guides/failures.md",
    "docs/guides/gavel-figures.md",
    "docs/guides/prediction.md",
    "docs/guides/studies.md",
    "docs/guides/throughput.md",
    "docs/systems/characterisation.md",
    "docs/systems/pai.md",
}
#: How commands begin that do not run here, and why.
NOT_RUN = {
    "lab ": "a server, which runs until it is stopped",
    "serving ": "test_serving_guide.py runs them on the files that the guide makes",
}
#: What a page says -> what runs in its place, smaller, with files that the test makes.
SMALLER = (
    (r"[][]", ""),  # around what may be left out
    (r"\bphilly(?=\s|$)", "synthetic:philly:jobs=100"),
    (r"morphling:(base|mt)", "jobs.csv --cluster morphling"),
    (r"(morphling compare)", r"\1 --traces jobs.csv --penalties 260 --policies morphling"),
    (r"openb openb", "8x8 jobs.csv"),
    (r"jobs=\d{4,}", "jobs=200"),
    (r"(synthetic:\w+)(?=\s|$)", r"\1:jobs=100"),
    (r"TRACE(\.\.\.)?", "synthetic:philly:jobs=100"),
    (r"--cluster FILE\.toml", "--cluster cluster.toml"),
    (r"--out FILE", "--out mine.twin.toml"),
    (r"cifar100", "synthetic"),
    (r"energy groups", "energy groups --workload synthetic"),
    (r"--seeds 20", "--seeds 2 --recurrences 10"),
    (r"--data DIR --gpu GPU --workload DATASET", "--data measured --gpu mine --workload mine"),
    (r"(--default-batch-size 256)", r"\1 --seeds 2 --recurrences 10"),
    (r"--work 30d", "--work 2d"),
    (r"--rates \S+(.*) --seeds \S+", r"--rates 2\1 --seeds 0 --measure 2:6"),
    (r"--counts \S+ --seeds \S+", "--counts 4 --seeds 0"),
    (r"nodes=56\.\.96/4", "nodes=56..60/4"),
)


def text_of(page: str) -> str:
    """Return a page, with lines of the shell that go on in one."""
    return re.sub(r"\s*\\\n\s*", " ", (ROOT / page).read_text(encoding="utf-8"))


def commands(page: str) -> list[str]:
    """Return what follows `windtunnel` in a page's blocks of the shell and its tables of tasks."""
    found = []
    fence: str | None = None
    in_table = False
    for line in text_of(page).splitlines():
        in_table = line.startswith("|") and (in_table or line == "| question | command |")
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
        elif in_table:
            found += _INLINE.findall(line)
        elif fence in ("", "sh") or (fence is None and line.startswith("    ")):
            parts = (part.strip() for part in line.partition("#")[0].split("&&"))
            found += [match[1] for part in parts if (match := _COMMAND.fullmatch(part))]
    return found


def unknown_options(command: str) -> set[str]:
    """Return the options of a command of a page that it does not have."""
    group: click.Command = windtunnel
    words = re.sub(r"[][]", "", command).split()
    while isinstance(group, click.Group) and words and not words[0].startswith("-"):
        _, chosen, words = group.resolve_command(click.Context(group), words)
        assert chosen is not None, command
        group = chosen
    known = {name for given in group.params for name in (*given.opts, *given.secondary_opts)}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    return asked - known - {"--help"}


def test_commands_are_found() -> None:
    assert "report queue sacct.txt --out queue.html" in commands("README.md")  # in ```sh
    assert "throughput allocate roberta t5_3B --gpus 4" in commands("docs/guides/throughput.md")
    assert "bench mypkg:policy --holdout" in commands("docs/bench.md")  # indented, explained
    assert "validate log.txt" in commands("docs/guides/operators.md")  # in a table
    assert sum(len(commands(page)) for page in PAGES) > 80


@pytest.mark.parametrize("page", PAGES)
def test_commands_have_the_options_that_pages_give_them(page: str) -> None:
    for command in (*commands(page), *_INLINE.findall(text_of(page))):
        assert not unknown_options(command), command


def _write_files(command: str) -> None:
    """Write the files that a command names and that are not there yet."""
    for name, write in FILES.items():
        word = re.escape(name.removesuffix(".py"))
        if (
            re.search(rf"(?<![\w./])(?<!--out ){word}(?![\w.])", command)
            and not Path(name).exists()
        ):
            write(Path(name))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page
        for page in PAGES
        if commands(page)
    ],
)
def test_commands_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(command.startswith("study tune") for command in commands(page)):
        pytest.importorskip("optuna", reason="Optuna is not installed (extra search)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which a module:name adds the folder
    for name in ("mymodule", "mypkg"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with registrations_forgotten():
        for command in commands(page):
            if command.startswith(tuple(NOT_RUN)):
                continue
            smaller = command
            for given, instead in SMALLER:
                smaller = re.sub(given, instead, smaller)
            _write_files(smaller)
            ran = CliRunner().invoke(windtunnel, shlex.split(smaller))
            assert ran.exit_code == 0, f"{command}\nas {smaller}\n{ran.output}"


def test_the_command_that_tries_a_wheel_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    words = shlex.split(project["tool"]["cibuildwheel"]["test-command"])
    ran = CliRunner().invoke(windtunnel, words[1:])
    assert (words[0], ran.exit_code) == ("windtunnel", 0), ran.output
