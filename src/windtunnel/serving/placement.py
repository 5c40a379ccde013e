"""Which models lie on which groups of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import InfeasibleError, SpecError, quote
from windtunnel.serving.parallel import Parallel, as_parallel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.serving.profile import Profile

#: Memory for weights on a GPU with 16 GB, as in AlpaServe's experiments: 13 GiB.
MEM_BUDGET = 13.0 * 2**30


@dataclass(frozen=True)
class Group:
    """GPUs with one parallel configuration, and the models they hold.

    Attributes:
        parallel: the configuration; every model of the group is sharded with it.
        models: indices of models, in the order given.
    """

    parallel: Parallel
    models: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """Groups that share out a cluster; group j has the GPUs after those of group j - 1.

    Attributes:
        groups: in order, which breaks ties of dispatch.
    """

    groups: tuple[Group, ...]

    @property
    def num_gpus(self) -> int:
        """GPUs of all groups."""
        return sum(group.parallel.gpus for group in self.groups)

    @property
    def num_replicas(self) -> int:
        """Pairs of group and model."""
        return sum(len(group.models) for group in self.groups)

    def normal(self) -> Placement:
        """Return it with models sorted in groups, and groups by models, then configuration."""
        groups = [Group(group.parallel, tuple(sorted(group.models))) for group in self.groups]
        return Placement(tuple(sorted(groups, key=lambda group: (group.models, group.parallel))))

    def check(
        self, models: Sequence[str], profile: Profile, mem_budget: float | None = None
    ) -> None:
        """Raise unless the models can run where they are placed.

        Args:
            models: the profile's name of each model.
            profile: costs and memory.
            mem_budget: bytes for weights on a GPU; None does not ask.

        Raises:
            SpecError: an index is out of range or twice in a group, or a configuration has no
                profile.
            InfeasibleError: a group's weights are more than the budget.
        """
        for number, group in enumerate(self.groups):
            path = f"$.groups[{number}].models"
            if len(set(group.models)) < len(group.models):
                raise SpecError(path, "a model is there twice.")
            for model in group.models:
                if not 0 <= model < len(models):
                    raise SpecError(
                        path, f"found model {quote(model)}; expected 0 to {len(models) - 1}."
                    )
                profile.stages(models[model], group.parallel)
            if mem_budget is None:
                continue
            weight = sum(profile.weight(models[model], group.parallel) for model in group.models)
            if not weight <= mem_budget:
                raise InfeasibleError(
                    f"placement, group {number}",
                    f"its models need {weight / 2**30:.3f} GiB a GPU of {mem_budget / 2**30:.3f}",
                )

    def data(self) -> list[dict[str, Any]]:
        """Return it as plain data, as `as_placement` takes it."""
        return [
            {"parallel": list(group.parallel), "models": list(group.models)}
            for group in self.groups
        ]


def as_placement(data: Any, path: str = "$.groups") -> Placement:
    """Return plain data as a placement.

    Args:
        data: a list of ``{"parallel": [dp, op, pp], "models": [0, 3]}``, or an object whose
            ``groups`` (or ``placement``) is that list.
        path: where it stands, for errors.

    Raises:
        SpecError: it is something else.

    >>> as_placement([{"parallel": [1, 1, 2], "models": [0, 1]}]).num_gpus
    2
    """
    if isinstance(data, dict):
        data = data.get("groups", data.get("placement"))
    if not isinstance(data, list) or not data:
        raise SpecError(path, f"found {quote(data)}; expected a list of groups.")
    groups = []
    for number, item in enumerate(data):
        here = f"{path}[{number}]"
        if not isinstance(item, dict) or set(item) != {"parallel", "models"}:
            raise SpecError(here, f"found {quote(item)}; expected parallel and models.")
        models = item["models"]
        whole = isinstance(models, list) and all(type(model) is int for model in models)
        if not whole:
            raise SpecError(f"{here}.models", f"found {quote(models)}; expected model indices.")
        groups.append(Group(as_parallel(item["parallel"], f"{here}.parallel"), tuple(models)))
    return Placement(tuple(groups))
