"""Kueue's feature gates, as far as they change a decision; the defaults are those of v0.20."""

from __future__ import annotations

import msgspec


class Gates(msgspec.Struct, frozen=True, rename="pascal"):
    """Which of Kueue's features are on."""

    priority_sorting_within_cohort: bool = True
    flavor_fungibility: bool = True
    flavor_fungibility_preserve_scan_progress: bool = True
    fair_sharing_preempt_within_nominal: bool = True
    fair_sharing_prioritize_non_borrowing: bool = True
    topology_aware_scheduling: bool = True
    tas_profile_mixed: bool = msgspec.field(default=True, name="TASProfileMixed")
    tas_multi_layer_topology: bool = msgspec.field(default=True, name="TASMultiLayerTopology")
    tas_recompute_assignment_within_scheduling_cycle: bool = msgspec.field(
        default=True, name="TASRecomputeAssignmentWithinSchedulingCycle"
    )
    recompute_assignment_upon_preemption_targets_overlap: bool = True
    tas_failed_node_replacement: bool = msgspec.field(default=True, name="TASFailedNodeReplacement")
    tas_failed_node_replacement_fail_fast: bool = msgspec.field(
        default=True, name="TASFailedNodeReplacementFailFast"
    )
    tas_handle_overlapping_flavors: bool = msgspec.field(
        default=True, name="TASHandleOverlappingFlavors"
    )
    scheduling_equivalence_hashing: bool = True
    partial_admission: bool = True
    admission_fair_sharing: bool = True
    reclaimable_pods: bool = True
    tas_balanced_placement: bool = msgspec.field(default=False, name="TASBalancedPlacement")
    tas_respect_node_affinity_preferred: bool = msgspec.field(
        default=False, name="TASRespectNodeAffinityPreferred"
    )
    priority_boost: bool = False
    prioritize_preemptor_workloads: bool = False
    concurrent_admission: bool = False
