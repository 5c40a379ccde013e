"""Reading and characterising a PAI folder of the release's size, against pandas.

``WINDTUNNEL_PAI_SCALE`` makes the folder smaller (0.1 = a tenth of the rows); at another scale
than 1 only what it takes beside pandas is judged.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))  # benchmarks are not a package

from pai_instances import Size, write_folder  # noqa: E402 - found through the line above
from processes import Measured, measured  # noqa: E402 - so is this

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Figures

SCALE = float(os.environ.get("WINDTUNNEL_PAI_SCALE", "1"))


def measured_on(script: str, folder: Path) -> Measured:
    """Run a script on a folder.

    The system has the files in memory by then: to bring them from the disk takes the same time
    whoever reads them, seconds of it where other work has driven them out.
    """
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            while file.read(2**20):
                pass
    return measured([sys.executable, str(_HERE / script), str(folder)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("pai")
    rows = write_folder(made, Size().scaled(SCALE))
    print(f"\nPAI folder at scale {SCALE:g}: {rows}")
    yield made
    for path in made.iterdir():
        path.unlink()


@pytest.fixture(scope="module")
def two_tables(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("instances")
    for name in ("pai_task_table.csv", "pai_instance_table.csv"):
        (made / name).symlink_to(folder / name)
    return made


def test_reading_and_characterising_against_pandas(folder: Path, figures: Figures) -> None:
    compare(folder, "pai", "PAI, seven tables, read and characterise", figures)


def test_reading_checking_and_characterising_instances_against_pandas(
    two_tables: Path, figures: Figures
) -> None:
    compare(two_tables, "instances", "PAI, 7.5 M instances and their tasks", figures)


def compare(folder: Path, scripts: str, what: str, figures: Figures) -> None:
    """Let windtunnel and pandas do the same work by turns, and note what it took.

    The one that goes first pays for memory that the machine has to find; so each goes twice, and
    the cheaper time counts.
    """
    pytest.importorskip("pandas")
    ours, theirs = (
        min(runs, key=lambda run: run.cpu)
        for runs in zip(
            *(
                [measured_on(f"{scripts}_{name}.py", folder) for name in ("windtunnel", "pandas")]
                for _ in range(2)
            ),
            strict=True,
        )
    )
    for run, name in ((ours, "windtunnel"), (theirs, "pandas")):
        print(
            f"{name}: CPU {run.cpu:.1f} s ({run.system:.1f} s of it in the system), "
            f"wall {run.wall:.1f} s, peak {run.memory:.2f} GiB"
        )
    assert json.loads(ours.printed) == pytest.approx(json.loads(theirs.printed), rel=1e-9)
    if SCALE == 1:
        figures.amount(f"{what}: wall", ours.wall, "s", 60)
        figures.amount(f"{what}: CPU", ours.cpu, "CPU s", 60)
        figures.amount(f"{what}: peak memory", ours.memory, "GiB", 2)
    figures.amount(f"{what}: CPU against pandas", ours.cpu / theirs.cpu, "of it", 1 / 3)
    figures.amount(f"{what}: memory against pandas", ours.memory / theirs.memory, "of it", 1 / 3)
