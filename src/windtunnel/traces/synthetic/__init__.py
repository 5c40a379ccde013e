"""Synthetic traces that meet the published statistics of real clusters to the last job.

Each trace is one TOML file of facts in this package (see `windtunnel.traces.synthetic.published`);
a new cluster is a new file.
"""
