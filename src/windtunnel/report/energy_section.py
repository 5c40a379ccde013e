"""The part of a comparison's page that tells of energy: numbers, power over time, who used it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report import measures, power_charts, sections
from windtunnel.report.curves import named
from windtunnel.report.measures import Measure, optional
from windtunnel.report.result import Drawing, Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windtunnel.energy.account import Account
    from windtunnel.sim.outcome import Outcome


#: Groupings that get a chart: column, title.
_BY: tuple[tuple[str, str], ...] = (
    ("user", "Energy by user"),
    ("vc", "Energy by virtual cluster"),
    ("gpu_type", "Energy by GPU type"),
    ("workload", "Energy by kind of work"),
)


def energy_table(outcomes: Mapping[str, Outcome], books: Mapping[str, Account]) -> sections.Table:
    """Return the numbers of energy, a measure a row, each with its difference to the first run's.

    Args:
        outcomes: run name -> outcome, in order.
        books: run name -> its energy, the same runs.
    """
    runs = [numbers_of(book) for book in books.values()]
    return sections.measures_table(outcomes, runs, shown(runs))


def energy_part(outcomes: Mapping[str, Outcome], books: Mapping[str, Account]) -> Part:
    """Return the part of a page.

    Args:
        outcomes: run name -> outcome, in order.
        books: run name -> its energy, the same runs; at least one.
    """
    first = next(iter(books.values()))
    lines = "The line is the cap. " if first.cap is not None else ""
    runs = ", ".join(name for name, _ in named(outcomes))
    title = "Power over time, by source"
    caption = (
        "What the building draws, from the bottom: GPUs that jobs hold, idle GPUs, hosts, and the "
        f"building\u2019s overhead (PUE {first.model.pue:g}). {lines}Means of time bins: a peak "
        "within a bin is higher."
    )
    power = partial(power_charts.power_over_time, books)
    drawings = [Drawing("power", title, caption, power, f"{title}: {runs}")]
    for column, title in _BY:
        if power_charts.energy_by(books, column) is None:
            continue
        what = "the type that jobs were on" if column == "gpu_type" else "whose jobs held the GPUs"
        caption = (
            f"Of GPUs while held, by {what}; idle GPUs, hosts and overhead are not shared out."
        )
        draw = partial(power_charts.energy_by, books, column)
        drawings.append(Drawing(f"energy-{column}", title, caption, draw, f"{title}: {runs}"))
    return Part(
        "Energy",
        "From the first submission to the last end. Jobs are charged for the GPUs that they hold.",
        [("Energy of every run", energy_table(outcomes, books))],
        drawings,
        points=list(dict.fromkeys(note for book in books.values() for note in book.notes())),
    )


_ENERGY, _POWER = "Energy", "Power"
_POLICY = "Policies of power"

MEASURES: tuple[Measure, ...] = (
    Measure("energy_j", "Energy", "energy", "low", _ENERGY, "everything, the building included"),
    Measure("jobs_j", "of jobs\u2019 GPUs", "energy", "low", _ENERGY, "GPUs while jobs hold them"),
    Measure("idle_j", "of idle GPUs", "energy", "low", _ENERGY, "GPUs that no job holds"),
    optional("host_j", "of hosts", "energy", "low", _ENERGY,
             "nodes besides their GPUs, and nodes asleep"),
    optional("overhead_j", "of the building", "energy", "low", _ENERGY,
             "PUE - 1 of all other draw"),
    optional("carbon_kg", "Carbon", "carbon", "low", _ENERGY, "energy x intensity"),
    optional("cost", "Cost", "number", "low", _ENERGY, "in the tariff\u2019s money"),
    Measure("mean_power_w", "Mean", "power", "low", _POWER, "of the building, over the run"),
    Measure("peak_power_w", "Peak", "power", "low", _POWER, "of the building"),
    optional("capped_time", "Time at the cap", "duration", "low", _POLICY,
             "time in which some job waited for power alone"),
    optional("num_cuts", "Jobs stopped at the cap", "count", "low", _POLICY,
             "times a running job was stopped because the cap fell"),
    optional("limited_gpu_time", "GPU time lost to limits", "gpu_time", "low", _POLICY,
             "GPU time held, less work done: what power limits (and slow-downs, if any) cost"),
    optional("num_shifted", "Jobs shifted", "count", None, _POLICY,
             "jobs held after their submission for a better time"),
    optional("avg_shift", "Shift, mean", "duration", "low", _POLICY, "how long these were held"),
    optional("num_late", "Shifted jobs too late", "count", "low", _POLICY,
             "jobs that may be shifted and were not over by their deadline"),
    optional("num_pauses", "Pauses", "count", None, _POLICY,
             "times a running job was stopped to go on at a better time"),
    optional("node_time_asleep", "Nodes asleep", "node_time", "high", _POLICY,
             "node-hours powered off"),
    optional("slept_j", "Saved by sleep", "energy", "high", _POLICY,
             "what the sleeping nodes would have drawn idle, less what they drew"),
    optional("num_wakes", "Nodes woken", "count", "low", _POLICY, "nodes woken"),
)  # fmt: skip
#: Values no larger than this are nothing.
_NOTHING = 1e-12


def numbers_of(book: Account) -> dict[str, Any]:
    """Return a run's energy and what its policies of power did, by key."""
    from windtunnel.energy.governed import governed  # with the whole of windtunnel.energy

    return {**book.summary(), **governed(book)}


def shown(runs: Sequence[dict[str, Any]]) -> list[Measure]:
    """Return the measures worth a row: optional ones only where some run has a value."""
    return measures.shown(runs, MEASURES, _NOTHING)
