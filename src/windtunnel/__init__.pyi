"""The public names, and where they come from; `windtunnel` itself goes by this list."""

from windtunnel import gavel as gavel, plot as plot, serving as serving, testing as testing
from windtunnel.cluster.spec import ClusterSpec as ClusterSpec, NodeType as NodeType
from windtunnel.errors import (
    InfeasibleError as InfeasibleError,
    PolicyError as PolicyError,
    SchemaError as SchemaError,
    SpecError as SpecError,
    TraceError as TraceError,
    WindtunnelError as WindtunnelError,
)
from windtunnel.placements.catalogue import placement as placement
from windtunnel.policies.catalogue import policy as policy
from windtunnel.policies.kueue.policy import Kueue as Kueue
from windtunnel.predictors.catalogue import predictor as predictor
from windtunnel.sim.contract import (
    Move as Move,
    Policy as Policy,
    Preempt as Preempt,
    Rerate as Rerate,
    Resize as Resize,
    Start as Start,
    Wake as Wake,
)
from windtunnel.sim.disruptions.spec import Disruptions as Disruptions
from windtunnel.sim.jobs import Jobs as Jobs, JobView as JobView
from windtunnel.sim.own_metrics import metric as metric
from windtunnel.sim.outcome import Outcome as Outcome
from windtunnel.sim.slowdown import Slowdown as Slowdown
from windtunnel.site.scheduler import Scheduler as Scheduler
from windtunnel.site.site import Site as Site
from windtunnel.study.compare import compare as compare
from windtunnel.study.compare import Comparison as Comparison
from windtunnel.study.grid.run import run_study as run_study
from windtunnel.study.grid.spec import Study as Study
from windtunnel.study.grid.store import Results as Results, open_results as open_results
from windtunnel.study.learning import learn as learn
from windtunnel.study.simulate import simulate as simulate
from windtunnel.telemetry.open import open_telemetry as open_telemetry
from windtunnel.telemetry.stream import Telemetry as Telemetry
from windtunnel.throughput.morphling_models import throughput_model as throughput_model
from windtunnel.traces.open import open_trace as open_trace
from windtunnel.traces.readers import reader as reader
from windtunnel.traces.trace import Trace as Trace, TraceMetadata as TraceMetadata
from windtunnel.traces.writers import writer as writer
from windtunnel.traces.twin.fit import fit as fit
from windtunnel.traces.twin.twin import Twin as Twin

__version__: str
