"""How fast jobs run: measured tables of training speeds."""

from windtunnel.throughput.measured import ThroughputTable, gavel_speeds, read_throughputs

__all__ = ["ThroughputTable", "gavel_speeds", "read_throughputs"]
