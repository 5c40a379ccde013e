"""Optimisation models in the words of their builders, solved by HiGHS."""

from windtunnel.optimize.linear_program import LinearProgram, Solution, distinct_costs

__all__ = ["LinearProgram", "Solution", "distinct_costs"]
