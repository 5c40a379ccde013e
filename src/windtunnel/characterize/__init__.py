"""What a trace looks like: pure functions from a jobs table to numbers, one question a module."""

from windtunnel.characterize.distributions import distribution
from windtunnel.characterize.overview import overview
from windtunnel.characterize.shares import SHARES_BY, shares

__all__ = ["SHARES_BY", "distribution", "overview", "shares"]
