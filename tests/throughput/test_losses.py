"""Loss differences between plans."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.throughput.losses import loss_differences, title_of
from windtunnel.traces.training_points import read_losses

if TYPE_CHECKING:
    from pathlib import Path


def test_differences_by_hand() -> None:
    runs = {"a": np.array([1.0, 2, 3, 4, 5]), "b": np.array([2.0, 2, 1, 4, 99])}
    (found,) = loss_differences(runs, "a", window=2)
    assert found.differences.tolist() == [0.5, 1.0]  # the fifth step fills no window
    (short,) = loss_differences(runs, "a", window=2, steps=3)
    assert short.differences.tolist() == [0.5]


def test_published_losses(data_dir: Path) -> None:
    """Plans 241 and 811 stay close to 181; 421 follows the other seed, which it evidently had."""
    path = data_dir / "morphling/llama7b_loss.csv"
    losses = read_losses(path)
    assert list(losses) == ["181", "181_seed", "241", "421", "811"]
    found = {one.run: one for one in loss_differences(losses, "181")}
    assert {len(one.differences) for one in found.values()} == {120}
    with path.open() as file:
        rows = list(csv.DictReader(file))[:25]
    first = sum(abs(float(r["loss_811"]) - float(r["loss_181"])) for r in rows) / 25
    assert found["811"].differences[0] == pytest.approx(first)
    assert found["241"].title == "241: pipeline 2, tensor 4, data 1"
    assert all(found[run].mean < 0.2 * found["181_seed"].mean for run in ("241", "811"))
    assert found["421"].mean > 0.9 * found["181_seed"].mean
    seeded = {one.run: one.mean for one in loss_differences(losses, "181_seed")}
    assert seeded["421"] < 0.25 * seeded["181"]


def test_titles() -> None:
    assert title_of("811") == "811: pipeline 8, tensor 1, data 1"
    assert title_of("zero-dp") == "zero-dp"
    assert title_of("whatever") == "whatever"


def test_wrong_words() -> None:
    runs = {"181": np.ones(4), "811": np.ones(4)}
    with pytest.raises(SpecError, match="Did you mean '181'"):
        loss_differences(runs, "182")
    with pytest.raises(SpecError, match="at most the 4 steps"):
        loss_differences(runs, "181", window=5)
    with pytest.raises(SpecError, match="another run"):
        loss_differences({"181": np.ones(4)}, "181")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iteration,loss_1\n1,2\n3,2\n", "line 3, column 'iteration': found 3; expected 2"),
        ("iteration,loss_1\n1,nan\n", "line 2, column 'loss_1'"),
        ("iteration,loss_1\n1,\n", "line 2, column 'loss_1'"),
        ("iteration,loss_1\n1,x\n", "line 2, column 'loss_1'"),
        ("iteration\n1\n", "a column 'loss_NAME'"),
        ("step,loss_1\n1,2\n", "column 'iteration'"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "losses.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        read_losses(path)
    assert message in str(error.value)
