"""`Conditions`: all that a run is flown under: site, scheduler, seed, horizon, engine."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.site.fields import Field, NamedFields, check_fields, fields_of, plain, quiet_values
from windtunnel.site.scheduler import Scheduler
from windtunnel.site.site import Site

#: What may fly a run.
ENGINES: tuple[str, ...] = ("auto", "compiled", "reference")


class Conditions(msgspec.Struct, metaclass=NamedFields, frozen=True, forbid_unknown_fields=True):
    """All that a run is flown under, besides its jobs.

    Attributes:
        site: what the cluster is and what happens to it.
        scheduler: what decides.

    The other fields tell what they are (`Field`).

    Raises:
        SpecError: a value is wrong; names the field.
    """

    site: Site = Site()
    scheduler: Scheduler = Scheduler()
    seed: Annotated[
        Any,
        Field("Seed of everything random.", "N", section="conditions", kind="seed"),
    ] = 0
    until: Annotated[
        Any,
        Field(
            "Stop the clock here, such as 30d after time 0.",
            "TIME",
            section="conditions",
            kind="time",
            unit="s",
            details="Time 0 is the trace's. Otherwise the clock stops when every job has finished.",
        ),
    ] = None
    window: Annotated[
        str | None,
        Field(
            "Measure jobs submitted inside: 10%..90%, 2d..30d, jobs:1000..9000.",
            "FROM..TO",
            section="conditions",
            kind="window",
            default="all jobs",
            details="All jobs are flown. Parts are of the submissions, times are counted from the "
            "first one, and jobs from 0.",
        ),
    ] = None
    metrics: Annotated[
        Any,
        Field(
            "Your own metrics, by name or package.module:name.",
            "NAME,...",
            section="conditions",
            kind="names",
            details="Names are of installed ones: [writing a metric](../guides/write-a-metric.md).",
        ),
    ] = None
    record: Annotated[
        Any,
        Field(
            "Write why each job waited, for windtunnel why.",
            "FILE.parquet",
            section="conditions",
            kind="object",
            details="And what stopped it: [why](../guides/why.md).",
        ),
    ] = None
    engine: Annotated[
        str,
        Field(
            "auto, compiled or reference; the results are the same.",
            "NAME",
            section="conditions",
            kind="word",
            words=ENGINES,
            details="It is what flies the run.",
        ),
    ] = "auto"
    allow_large: Annotated[
        bool,
        Field(
            "Fly even what needs much time or memory.",
            section="conditions",
            kind="flag",
            details="Without it a run of more events or memory than is flown unasked is refused.",
        ),
    ] = False
    trust: Annotated[
        bool,
        Field(
            "The site file may name code (package.module:name), which is then run.",
            section="cluster",
            kind="flag",
        ),
    ] = False

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            SpecError: a value is wrong; names the field.
        """
        for name, kind in (("site", Site), ("scheduler", Scheduler)):
            if not isinstance(value := getattr(self, name), kind):
                message = f"found {quote(value)}; expected a {kind.__name__}."
                raise SpecError(name, message)
        check_fields(self)

    def having(self, **values: Any) -> Conditions:
        """Return conditions that differ in some fields, of whichever struct they are.

        Raises:
            SpecError: there is no such field, or a value is wrong; the nearest name is suggested.

        >>> Conditions().having(queueing="easy", until="1h").scheduler.queueing
        'easy'
        """
        parts: dict[type[msgspec.Struct], dict[str, Any]] = {
            Site: {},
            Scheduler: {},
            Conditions: {},
        }
        for name, value in values.items():
            if name not in HOMES:
                raise SpecError.unknown(name, name, HOMES)
            parts[HOMES[name]][name] = value
        replace = msgspec.structs.replace
        return replace(
            self,
            site=replace(self.site, **parts[Site]) if parts[Site] else self.site,
            scheduler=replace(self.scheduler, **parts[Scheduler])
            if parts[Scheduler]
            else self.scheduler,
            **parts[Conditions],
        )

    def value(self, name: str) -> Any:
        """Return the value of a field, of whichever struct it is."""
        home = HOMES[name]
        part = self.site if home is Site else self.scheduler if home is Scheduler else self
        return getattr(part, name)

    def as_settings(self) -> dict[str, Any]:
        """Return what was asked for as plain data, for an outcome's settings.

        Cluster and policy are left to the caller; models and files to whoever read them: they are
        None here. What a run is accounted with, and what was allowed, does not belong to it.
        """
        apart = {"cluster", "policy", "carbon", "tariff", "allow_large", "trust", "record"}
        return {
            name: None if field.kind == "object" else plain(self.value(name))
            for name, field in FIELDS.items()
            if name not in apart
        }


#: The fields of all three structs, by name.
FIELDS: dict[str, Field] = {
    name: field for kind in (Scheduler, Site, Conditions) for name, field in fields_of(kind).items()
}
#: The struct that each of them is of.
HOMES: dict[str, type[msgspec.Struct]] = {
    name: kind for kind in (Scheduler, Site, Conditions) for name in fields_of(kind)
}
#: The value of each of them that says nothing.
QUIET: dict[str, Any] = {name: quiet_values(kind)[name] for name, kind in HOMES.items()}
