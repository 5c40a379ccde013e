"""Predictors of job durations: trained on the past only, back-tested along a trace."""

from windtunnel.predictors.backtest import Backtest, backtest
from windtunnel.predictors.catalogue import PREDICTORS, predictor, resolve_predictor
from windtunnel.predictors.convention import SOURCES, Predicted, Predictor
from windtunnel.predictors.knowledge import KNOWN_AFTER
from windtunnel.predictors.online import predict_online

__all__ = [
    "KNOWN_AFTER",
    "PREDICTORS",
    "SOURCES",
    "Backtest",
    "Predicted",
    "Predictor",
    "backtest",
    "predict_online",
    "predictor",
    "resolve_predictor",
]
