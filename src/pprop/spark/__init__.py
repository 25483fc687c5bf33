"""The same propagation on a cluster: graphs, predictions and results are data frames of Spark, kernels run in its tasks.

>>> from pprop.spark import propagate  # doctest: +SKIP
>>> spread = propagate("edges.parquet", "scores.parquet", alpha=0.1, work="/shared/spread")  # doctest: +SKIP
>>> spread.write.parquet("spread.parquet")  # doctest: +SKIP
"""

from pprop.spark.pack import pack_graph
from pprop.spark.predict import predict
from pprop.spark.propagate import propagate
from pprop.spark.session import find_java
from pprop.spark.topk import ppr_topk
from pprop.spark.train import train

__all__ = ["find_java", "pack_graph", "ppr_topk", "predict", "propagate", "train"]
