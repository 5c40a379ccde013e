"""Topology trees: levels of domains above the nodes, and where in them a job's pods go."""
