"""Elastic runs: jobs whose GPUs, CPU cores and execution plans a policy may change as they run.

A job's work is a number of iterations; how fast they go depends on the option it runs. Every launch
and every change of option or place costs the job's penalty, in which it holds its GPUs and makes no
progress (Morphling, MLSys'25, section 5: checkpoint and restart).
"""
