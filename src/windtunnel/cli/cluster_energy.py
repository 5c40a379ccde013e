"""``--power``, ``--carbon`` and ``--tariff``: the energy of a run of a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.cli.flying import Flown
    from windtunnel.energy import Account
    from windtunnel.report.sections import Fact
    from windtunnel.site.site import Site

#: Parts of the energy, shown with their share.
_PARTS = ("jobs_j", "idle_j", "host_j", "overhead_j")
#: Labels that need the word that a table's heading has.
_LABELS = {
    "mean_power_w": "mean power",
    "peak_power_w": "peak power",
    "overhead_j": "overhead, PUE {:g}",
}


def with_energy(flown: Flown, site: Site) -> Flown:
    """Return the runs with their energy, where there is a model of power, and its notes.

    Raises:
        SpecError, TraceError: the model does not describe what the cluster has, or a file is wrong.
    """
    if next(iter(flown.outcomes.values())).settings.get("power") is None:
        return flown
    from windtunnel.energy.accounting import books_of

    outcomes = list(flown.outcomes.values())
    books = dict(zip(flown.outcomes, books_of(outcomes, site), strict=True))
    notes = [note for book in books.values() for note in book.notes()]
    return replace(flown, books=books, notes=tuple(dict.fromkeys([*flown.notes, *notes])))


def energy_data(book: Account) -> dict[str, Any]:
    """Return a run's energy as plain data.

    Keys: ``energy_j``, ``carbon_kg`` and ``cost`` of everything, PUE included; ``energy``: these
    and their parts (`Account.summary`), what policies of power did (`governed`), ``by_user``,
    ``by_vc`` and ``by_type`` (lists of rows), ``model``.
    """
    from windtunnel.energy import governed

    numbers = book.summary()
    return {
        **{name: numbers[name] for name in ("energy_j", "carbon_kg", "cost")},
        "energy": {
            **numbers,
            **governed(book),
            "by_user": book.by("user").to_pylist(),
            "by_vc": book.by("vc").to_pylist(),
            "by_type": book.by_type().to_pylist(),
            "model": book.model.to_mapping(),
        },
    }


def energy_facts(book: Account) -> list[Fact]:
    """Return where the energy went, what it emitted and cost, and what policies of power did."""
    from windtunnel.report.energy_section import numbers_of, shown
    from windtunnel.report.sections import Fact

    numbers = numbers_of(book)
    whole = numbers["energy_j"] or 0.0
    found = []
    for measure in shown([numbers]):
        value = numbers[measure.key]
        text = measure.text(value)
        if measure.key in _PARTS and whole:
            text += f" ({value / whole:.1%})"
        label = _LABELS.get(measure.key, measure.label[:1].lower() + measure.label[1:])
        found.append(Fact(label.format(book.model.pue), text))
    return found
