"""Reader of training losses: a row a step, a column ``loss_NAME`` a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.traces.tabular import read_text

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

_PREFIX = "loss_"
_STEP = "iteration"


def read_losses(path: str | Path) -> dict[str, npt.NDArray[np.float64]]:
    """Read the losses of several runs of one training.

    Args:
        path: CSV, plain or gzip: ``iteration`` (1, 2, ...) and a column ``loss_NAME`` a run.

    Returns:
        Run -> loss of each step, shape (steps,), in the file's order of columns.

    Raises:
        TraceError: it cannot be read so, a step is missing or a loss is no finite number.
    """
    text = read_text(path)
    text.require(_STEP)
    steps = text.integers(_STEP).to_pylist()
    for expected, (step, line) in enumerate(zip(steps, text.lines, strict=True), start=1):
        if step != expected:
            raise TraceError(text.file, f"{expected}", row=int(line), column=_STEP, value=step)
    names = [name for name in text.table.column_names if name.startswith(_PREFIX)]
    if not names:
        raise TraceError(text.file, "a column 'loss_NAME' for each run")
    losses = {}
    for name in names:
        column = text.floats(name, what="a loss").to_numpy(zero_copy_only=False)
        values = np.asarray(column, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            row = int(bad[0])
            raise TraceError(
                text.file,
                "a finite loss",
                row=int(text.lines[row]),
                column=name,
                value=text.text(name)[row].as_py() or "",
            )
        losses[name.removeprefix(_PREFIX)] = values
    return losses
