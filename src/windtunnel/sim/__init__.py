"""The simulator: contract, two engines, outcome and its metrics."""
