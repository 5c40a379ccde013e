"""Files whose names hold bytes that are no UTF-8, as old machines have left them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable

ODD = os.fsdecode(b"gr\xf6\xdfe")
JOBS = "job_id,submit_time,start_time,end_time,num_gpus,user\n" + "".join(
    f"j{i},{i},{i + 2},{i + 60},1,u{i % 3}\n" for i in range(40)
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    path = tmp_path / f"{ODD}.csv"
    try:
        path.write_text(JOBS)
    except OSError:
        pytest.skip("this file system takes no such names")
    return path


def test_the_name_is_shown_with_marks_for_what_is_no_text(odd: Path) -> None:
    trace = open_trace(odd)
    assert trace.name == "gr\ufffd\ufffde"
    assert trace.metadata.source.endswith("gr\ufffd\ufffde.csv")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "words",
    [
        ("describe", "{}"),
        ("describe", "{}", "--json"),
        ("describe", "{}", "--html", "out.html"),
        ("figures", "{}", "--out", "figures"),
        ("simulate", "{}", "--cluster", "2x8"),
        ("convert", "{}", "out.swf"),
        ("convert", "{}", ODD + ".parquet"),
        ("convert", "{}", ODD, "--to", "opendc"),
        ("simulate", "{}", "--cluster", "2x8", "--out", ODD + ".parquet"),
        ("simulate", "{}", "--cluster", "2x8", "--out", ODD + "2.csv"),
        ("fit", "{}", "--out", "out.twin.toml"),
    ],
    ids=range(11),
)
def test_every_command_takes_such_a_file(
    run: Callable[..., Any], odd: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(odd.parent)
    assert run(*(word.format(odd.name) for word in words)).code == 0
    for word in words[2:]:
        if word.startswith(("out", "figures", ODD)):
            assert Path(word).exists()
