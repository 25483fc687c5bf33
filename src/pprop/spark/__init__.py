"""The same propagation on a cluster, with Spark."""

from pprop.spark.pack import pack_graph

__all__ = ["pack_graph"]
