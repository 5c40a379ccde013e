"""Predictors of job durations: trained on the past only, back-tested along a trace."""

from windtunnel.predictors.along import predict_along, with_predictions
from windtunnel.predictors.backtest import Backtest, backtest
from windtunnel.predictors.catalogue import PREDICTORS, predictor, resolve_predictor
from windtunnel.predictors.convention import SOURCES, Predicted, Predictor
from windtunnel.predictors.knowledge import KNOWN_AFTER
from windtunnel.predictors.online import OnlinePredictor

__all__ = [
    "KNOWN_AFTER",
    "PREDICTORS",
    "SOURCES",
    "Backtest",
    "OnlinePredictor",
    "Predicted",
    "Predictor",
    "backtest",
    "predict_along",
    "predictor",
    "resolve_predictor",
    "with_predictions",
]
