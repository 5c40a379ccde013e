"""All groups of a trace under one optimiser, and under the default beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.energy.groups import GroupResult, GroupRun, simulate_group
from windtunnel.energy.runs import Run
from windtunnel.energy.seeds import BASELINE, notes_of_all
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.plain import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from windtunnel.energy.group_tables import GroupTable
    from windtunnel.energy.workload import Workload


@dataclass(frozen=True)
class GroupStudy:
    """Groups under an optimiser and under the default.

    Attributes:
        optimizer: its name.
        settings: ``optimizer``, ``power_limits``, ``eta``, ``beta``, ``compat``.
        results: a group each.
        baseline: the same groups under the default, in the same order.
        gave_up: group -> why it could not be simulated; in neither of the two.
        notes: what a reader of the numbers must know.
    """

    optimizer: str
    settings: dict[str, Any]
    results: tuple[GroupResult, ...]
    baseline: tuple[GroupResult, ...]
    gave_up: dict[str, str]
    notes: tuple[str, ...]

    def table(self) -> pa.Table:
        """Return every run of the optimiser.

        Returns:
            Columns ``group``, ``dataset``, ``start_time``, ``end_time``, ``runtime_ratio``, the
            fields of `Run`, and ``scaled_energy_j``, ``scaled_time_s``, ``scaled_cost_j``.
        """
        import pyarrow as pa

        runs = [(result, one) for result in self.results for one in result.runs]
        columns: dict[str, list[Any]] = {
            "group": [result.group for result, _ in runs],
            "dataset": [result.dataset for result, _ in runs],
            "start_time": [one.submission.start_time for _, one in runs],
            "end_time": [one.submission.end_time for _, one in runs],
            "runtime_ratio": [one.submission.runtime_ratio for _, one in runs],
        }
        for place, name in enumerate(Run._fields):
            columns[name] = [one.run[place] for _, one in runs]
        for name in ("energy_j", "time_s", "cost_j"):
            columns[f"scaled_{name}"] = [_measure(one, name) for _, one in runs]
        return pa.table(columns)

    def by_group(self) -> list[dict[str, Any]]:
        """Return a row a group: what `summary` tells, its seed and its runs by batch size."""
        return [
            {
                **fields_of(mine, "group", "dataset", "seed"),
                **_totals([mine], [base]),
                "runs_by_batch_size": {
                    str(size): count for size, count in mine.runs_by_batch_size().items()
                },
            }
            for mine, base in zip(self.results, self.baseline, strict=True)
        ]

    def summary(self) -> dict[str, Any]:
        """Return sums over groups.

        Returns:
            ``total`` and ``datasets`` (a row each, by name): ``num_groups``, ``num_jobs``,
            ``num_runs``, ``num_failed``, ``num_refused``, ``energy_j``, ``time_s``, ``cost_j``,
            the default's as ``default_energy_j`` and so on, and what is saved as a share of it,
            ``energy_saved``, ``time_saved``, ``cost_saved``.
        """
        rows = []
        for dataset in sorted({result.dataset for result in self.results}):
            mine = [result for result in self.results if result.dataset == dataset]
            base = [result for result in self.baseline if result.dataset == dataset]
            rows.append({"dataset": dataset, **_totals(mine, base)})
        return {"total": _totals(self.results, self.baseline), "datasets": rows}


def _measure(one: GroupRun | GroupResult, name: str) -> float:
    return float(getattr(one, name))


def _totals(mine: Sequence[GroupResult], base: Sequence[GroupResult]) -> dict[str, Any]:
    totals: dict[str, Any] = {
        "num_groups": len(mine),
        "num_jobs": sum(result.num_jobs for result in mine),
        "num_runs": sum(len(result.runs) for result in mine),
        "num_failed": sum(result.num_failed for result in mine),
        "num_refused": sum(result.refused for result in mine),
    }
    for name, short in (("energy_j", "energy"), ("time_s", "time"), ("cost_j", "cost")):
        used = sum(_measure(result, name) for result in mine)
        default = sum(_measure(result, name) for result in base)
        totals[name], totals[f"default_{name}"] = used, default
        totals[f"{short}_saved"] = 1.0 - used / default if default > 0 else None
    return totals


def study_groups(
    table: GroupTable,
    workloads: Mapping[str, Workload],
    *,
    optimizer: Any = "zeus",
    power_limits: Any = "jit",
    eta: float = 0.5,
    beta: float = 2.0,
    compat: str | None = None,
    on_done: Callable[[str], None] = lambda _: None,
) -> GroupStudy:
    """Simulate every group of a table.

    Args:
        table: the groups.
        workloads: dataset -> workload; every dataset of the table must be there.
        optimizer: see `windtunnel.energy.groups.simulate_group`, as the other arguments.
        power_limits: see there.
        eta: see there.
        beta: see there.
        compat: see there.
        on_done: called with a group's name after it.

    Raises:
        SpecError: a dataset without a workload, or an argument out of range.
        PolicyError: an optimiser proposes what was not measured.
        InfeasibleError: no group could be simulated.
    """
    missing = sorted(set(table.datasets) - set(workloads))
    if missing:
        raise SpecError.unknown("dataset of the groups", missing[0], workloads)
    options = {"power_limits": power_limits, "eta": eta, "beta": beta, "compat": compat}
    results, baseline, gave_up = [], [], {}
    for (group, dataset), jobs in table.groups().items():
        workload = workloads[dataset]
        try:
            base = simulate_group(workload, jobs, group, optimizer=BASELINE, **options)
            mine = simulate_group(workload, jobs, group, optimizer=optimizer, **options)
        except InfeasibleError as error:
            gave_up[group] = error.status
        else:
            baseline.append(base)
            results.append(mine)
        on_done(group)
    if not results:
        raise InfeasibleError("groups", f"in every group: {next(iter(gave_up.values()), 'none')}")
    notes = notes_of_all(results, gave_up, "groups")
    for dataset in table.datasets:
        notes += [f"{workloads[dataset].name}: {note}" for note in workloads[dataset].notes]
    name = optimizer if isinstance(optimizer, str) else getattr(optimizer, "name", str(optimizer))
    settings = {"optimizer": name, **options, "power_limits": str(power_limits)}
    return GroupStudy(name, settings, tuple(results), tuple(baseline), gave_up, tuple(notes))
