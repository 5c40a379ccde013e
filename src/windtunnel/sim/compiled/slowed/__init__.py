"""Runs with slow-downs on the compiled engine: rates that change as neighbours come and go.

Kernels of their own, so that plain runs stay as fast and as quickly compiled as they are. What the
reference engine spreads over `windtunnel.sim.ledger`, `rates` and `neighbours` is one `Ledger` of
tables here, and every float operation is theirs, in their order.
"""
