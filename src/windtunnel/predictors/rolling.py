"""Rolling statistics by template or user, and the cell means of the PAI study.

``rolling`` is the everyday predictor: what did the last runs of this template take?
``qssf-rolling`` is the rolling part of QSSF (Hu et al., SC'21, Helios;
S-Lab-System-Group/HeliosArtifact). ``sju``,
``sjg`` and ``sjgg`` are the cells {user}, {user, group} and {user, group, GPU type} of the PAI
simulator (Weng et al., NSDI'22), whose policies of these names order by them.
"""

from __future__ import annotations

from typing import ClassVar

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError
from windtunnel.predictors.convention import (
    GLOBAL,
    TEMPLATE,
    USER,
)
from windtunnel.predictors.features import Level, identity_columns
from windtunnel.predictors.running_mean import STATISTICS, Memory, RunningMean


class Rolling(RunningMean):
    """Mean or median of the last runs: of the template, of user and GPUs, of the user, of all.

    Args:
        by: what makes a run recurrent: columns joined by +, such as ``template`` or
            ``user+template+num_gpus``.
        last: runs that count where the job is recurrent; None = all (with the mean only).
        statistic: ``mean`` or ``median``.
        wider: runs that count in the fall-backs to the user and to all jobs; None = all.
        min_runs: runs that a key needs to be asked; with fewer the next coarser key is.
        similar: for a template that never ended before, ask the two with the closest names
            (similarity ratio >= 0.6), as QSSF does.

    Raises:
        SpecError: a parameter is out of range.
    """

    name: ClassVar[str] = "rolling"

    def __init__(  # noqa: PLR0917 - parameters of an estimator
        self,
        by: str = "template",
        last: int | None = 10,
        statistic: str = "mean",
        wider: int | None = 100,
        min_runs: int = 1,
        similar: bool = False,  # noqa: FBT001, FBT002 - a parameter like the others
    ) -> None:
        where = f"predictor {self.name}, "
        self.by = "+".join(identity_columns(f"{where}by", by))
        self.statistic = checked_choice(f"{where}statistic", statistic, STATISTICS)
        self.last = _window(f"{where}last", last, self.statistic)
        self.wider = _window(f"{where}wider", wider, self.statistic)
        self.min_runs = checked_count(f"{where}min_runs", min_runs)
        for window in (self.last, self.wider):
            if window is not None and window < self.min_runs:
                raise SpecError(
                    f"{where}min_runs",
                    f"found {min_runs}, more than the {window} runs that a window holds.",
                )
        self.similar = bool(similar)
        if self.similar and "template" not in self.by.split("+"):
            raise SpecError(f"{where}similar", f"compares templates; by={self.by!r} has none.")

    def memory(self) -> Memory:
        """Return an empty memory: ``by``, user and GPUs, user, all."""
        own = tuple(self.by.split("+"))
        levels = [Level(own, TEMPLATE if "template" in own else USER, self.last)]
        levels += [
            Level(columns, USER, self.wider)
            for columns in (("user", "num_gpus"), ("user",))
            if columns != own
        ]
        levels.append(Level((), GLOBAL, self.wider))
        return Memory(levels, self.statistic, min_runs=self.min_runs, similar=self.similar)


class QssfRolling(RunningMean):
    """The rolling part of QSSF: means over all runs, from the same name down to all jobs.

    In this order, the first that has any run: the user's jobs of this name with as many GPUs; the
    user's jobs of this name; anybody's; the same three for the two closest names; the user's jobs;
    all jobs. A job's name is its template.

    Args:
        similar: look for close names.
    """

    name: ClassVar[str] = "qssf-rolling"

    def __init__(
        self,
        similar: bool = True,  # noqa: FBT001, FBT002 - a parameter like the others
    ) -> None:
        self.similar = bool(similar)

    def memory(self) -> Memory:
        """Return an empty memory with QSSF's levels."""
        named = (("user", "template", "num_gpus"), ("user", "template"), ("template",))
        levels = [
            *(Level(columns, TEMPLATE) for columns in named),
            Level(("user",), USER),
            Level((), GLOBAL),
        ]
        return Memory(levels, "mean", similar=self.similar)


class CellMean(RunningMean):
    """The mean over all runs of a cell; without any, of the cell without its last column, and on.

    Args:
        by: the columns of the cell, joined by +.

    Raises:
        SpecError: there is no such column.
    """

    name: ClassVar[str] = "mean"

    def __init__(self, by: str = "user+template") -> None:
        self.by = "+".join(identity_columns(f"predictor {self.name}, by", by))

    def memory(self) -> Memory:
        """Return an empty memory: the cell, ever coarser, then the user, then all."""
        own = self.by.split("+")
        cells = [tuple(own[:length]) for length in range(len(own), 0, -1)]
        if ("user",) not in cells:
            cells.append(("user",))
        levels = [Level(cell, TEMPLATE if "template" in cell else USER) for cell in cells]
        return Memory([*levels, Level((), GLOBAL)], "mean")


class Sju(CellMean):
    """The mean of the user's runs, by which the PAI simulator's SJU orders."""

    name: ClassVar[str] = "sju"

    def __init__(self) -> None:
        super().__init__("user")


class Sjg(CellMean):
    """The mean of the user's runs of the group, by which the PAI simulator's SJG orders."""

    name: ClassVar[str] = "sjg"

    def __init__(self) -> None:
        super().__init__("user+template")


class Sjgg(CellMean):
    """The mean of the user's runs of the group on the GPU type, as in the PAI simulator's SJGG."""

    name: ClassVar[str] = "sjgg"

    def __init__(self) -> None:
        super().__init__("user+template+gpu_type")


def _window(where: str, value: int | None, statistic: str) -> int | None:
    """Return how many runs a window holds, None = all."""
    if value is None:
        if statistic != "mean":
            raise SpecError(where, f"found all runs; a {statistic} needs a number of runs.")
        return None
    return checked_count(where, value)
