"""Goodput models as files: the seven parameters of a step, batch sizes, noise, and the trust."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from windtunnel.errors import TraceError
from windtunnel.throughput.accuracy import TRUSTED
from windtunnel.throughput.goodput import BatchLimits, GoodputModel, GoodputTraining

#: What a file says it is.
GOODPUT_FORMAT = "windtunnel goodput model 1"
_Whole = Annotated[int, msgspec.Meta(ge=1)]
_Size = Annotated[int, msgspec.Meta(ge=1, le=4096)]
_Number = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    alpha_c: _Number
    beta_c: _Number
    alpha_n: _Number
    beta_n: _Number
    alpha_r: _Number
    beta_r: _Number
    gamma: Annotated[float, msgspec.Meta(ge=1, le=10)]


class GoodputFile(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag=GOODPUT_FORMAT
):
    """One file; `goodput_data` writes it. See `GoodputTraining` for what entries mean."""

    name: str
    title: str
    step: _Step
    first_batch: _Whole
    largest_batch: _Whole
    least_local: _Whole
    most_local: _Whole
    noise_scale: _Number
    trusted_gpus: _Size
    trusted_nodes: _Size
    mean_percent: _Number | None = None
    gpu_type: str | None = None
    measured: list[tuple[_Whole, _Whole, _Whole]] = []
    provenance: str = ""
    notes: list[str] = []

    def model(self) -> GoodputTraining:
        """Return the model.

        Raises:
            TraceError: sizes that contradict each other, or predictions too far off to be trusted.
        """
        for less, more in (("first_batch", "largest_batch"), ("least_local", "most_local")):
            if getattr(self, less) > getattr(self, more):
                expected = f"a number >= {less}, {getattr(self, less)}"
                value = getattr(self, more)
                raise TraceError("the model", expected, column=more, value=value)
        if self.step.alpha_c + self.step.beta_c == 0:
            expected = "alpha_c or beta_c above 0"
            raise TraceError("the model", expected, column="step.alpha_c", value=0)
        if self.mean_percent is not None and self.mean_percent > TRUSTED:
            expected = f"a mean error up to {TRUSTED:g} %, which is trusted"
            value = self.mean_percent
            hint = "Measure more steps and fit again."
            raise TraceError("the model", expected, column="mean_percent", value=value, hint=hint)
        return GoodputTraining(
            name=self.name,
            title=self.title,
            model=GoodputModel(msgspec.structs.astuple(self.step)),
            limits=BatchLimits(
                self.first_batch, self.largest_batch, self.least_local, self.most_local
            ),
            noise=self.noise_scale,
            most_gpus=self.trusted_gpus,
            most_nodes=self.trusted_nodes,
            mean_percent=self.mean_percent,
            gpu_type=self.gpu_type,
            measured=frozenset(self.measured),
            provenance=self.provenance,
        )


def goodput_data(model: GoodputTraining) -> dict[str, Any]:
    """Return a model as plain data, which `read_models` understands."""
    limits = model.limits
    return {
        "format": GOODPUT_FORMAT,
        "name": model.name,
        "title": model.title,
        "gpu_type": model.gpu_type,
        "step": dict(zip(_Step.__struct_fields__, model.model.values, strict=True)),
        "first_batch": limits.first,
        "largest_batch": limits.largest,
        "least_local": limits.least_local,
        "most_local": limits.most_local,
        "noise_scale": model.noise,
        "trusted_gpus": model.most_gpus,
        "trusted_nodes": model.most_nodes,
        "mean_percent": model.mean_percent,
        "measured": sorted(list(key) for key in model.measured),
        "provenance": model.provenance,
    }
