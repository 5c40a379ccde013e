"""How fast jobs run: measured tables of training speeds, and models of them."""

from windtunnel.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
