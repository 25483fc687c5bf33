"""What predictions are judged by, and from which probability on a node is taken for a class."""

from pprop.scoring.measures import METRICS, Forecast, Metric, Ranking
from pprop.scoring.scores import Judged, Scoring, default_scoring, ends, positive_class, resample
from pprop.scoring.threshold import Threshold, ThresholdRule

__all__ = [
    "METRICS",
    "Forecast",
    "Judged",
    "Metric",
    "Ranking",
    "Scoring",
    "Threshold",
    "ThresholdRule",
    "default_scoring",
    "ends",
    "positive_class",
    "resample",
]
