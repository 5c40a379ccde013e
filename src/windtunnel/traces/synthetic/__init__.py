"""Synthetic traces that meet the published statistics of real clusters to the last job.

Each trace is one TOML file of facts in this package (see `windtunnel.traces.synthetic.published`);
a new cluster is a new file.
"""

from windtunnel.traces.synthetic.generate import generate
from windtunnel.traces.synthetic.published import NAMES

__all__ = ["NAMES", "generate"]
