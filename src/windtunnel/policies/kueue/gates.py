"""Kueue's feature gates that change a decision here; the defaults are those of v0.20."""

from __future__ import annotations

import msgspec


class Gates(msgspec.Struct, frozen=True, rename="pascal"):
    """Which of Kueue's features are on."""

    priority_sorting_within_cohort: bool = True
    fair_sharing_preempt_within_nominal: bool = True
    fair_sharing_prioritize_non_borrowing: bool = True
    topology_aware_scheduling: bool = True
    tas_profile_mixed: bool = msgspec.field(default=True, name="TASProfileMixed")
    tas_recompute_assignment_within_scheduling_cycle: bool = msgspec.field(
        default=True, name="TASRecomputeAssignmentWithinSchedulingCycle"
    )
    recompute_assignment_upon_preemption_targets_overlap: bool = True
    tas_handle_overlapping_flavors: bool = msgspec.field(
        default=True, name="TASHandleOverlappingFlavors"
    )
    partial_admission: bool = True
    admission_fair_sharing: bool = True
    reclaimable_pods: bool = True
    tas_balanced_placement: bool = msgspec.field(default=False, name="TASBalancedPlacement")

    @property
    def changed(self) -> dict[str, bool]:
        """The gates that are not as by default, by Kueue's names."""
        usual: dict[str, bool] = msgspec.to_builtins(Gates())
        given: dict[str, bool] = msgspec.to_builtins(self)
        return {name: on for name, on in given.items() if on != usual[name]}

    @property
    def in_words(self) -> str:
        """Which gates were assumed."""
        words = ", ".join(
            f"{name}={'true' if on else 'false'}" for name, on in self.changed.items()
        )
        return f"as in v0.20, but for {words}" if words else "as in v0.20"
