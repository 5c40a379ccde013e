"""windtunnel: a wind tunnel for GPU clusters.

A trace is a set of tables. A policy turns tables into decisions. A run turns decisions into a
table. Everything we show is a function of tables.

>>> import windtunnel as wt
>>> jobs = {"submit_time": [0, 0, 1], "duration": [30, 10, 25], "num_gpus": [1, 1, 1]}
>>> wt.simulate(jobs, "pool:2", policy="fifo").metrics()["avg_jct"]
24.666666666666668

Which names there are stands in ``__init__.pyi`` (`windtunnel.lazy_names`).
"""

from windtunnel.lazy_names import lazy_names as _lazy_names

__version__ = "0.1.0"

__getattr__, __dir__ = _lazy_names(__name__, __file__)
