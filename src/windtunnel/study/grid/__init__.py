"""Experiments at scale: a grid of runs on any executor, kept in a store that survives a kill.

`run_study` flies a `Study`; `open_results` reads what it left; `windtunnel.study.grid.paired`
compares, `windtunnel.study.grid.search` searches parameters.
"""

from windtunnel.study.grid.run import run_study
from windtunnel.study.grid.spec import Study, to_toml
from windtunnel.study.grid.store import Results, open_results

__all__ = ["Results", "Study", "open_results", "run_study", "to_toml"]
