"""What the server counts, in the text that Prometheus reads."""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0)


@final
class Metrics:
    """Requests by endpoint and status, their times, edits, and the model; one registry for each server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        names = ["endpoint", "method", "status"]
        self._requests = Counter("pprop_requests", "Requests answered.", names, registry=self.registry)
        self._seconds = Histogram(
            "pprop_request_seconds",
            "Time from a request to the end of its answer.",
            ["endpoint"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._edits = Counter("pprop_edits", "Live edits made, by kind.", ["op"], registry=self.registry)
        self._sequence = Gauge("pprop_edit_sequence", "Number of the last batch of edits.", registry=self.registry)
        info = ["name", "kind", "graph", "pprop"]
        self._model = Gauge("pprop_model_info", "The model; always 1.", info, registry=self.registry)
        self._nodes = Gauge("pprop_graph_nodes", "Nodes of the graph.", registry=self.registry)
        self._edges = Gauge("pprop_graph_edges", "Edges of the graph.", registry=self.registry)

    def request(self, endpoint: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(endpoint, method, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def edits(self, ops: list[str], sequence: int) -> None:
        """Count the edits of one batch."""
        for op in ops:
            self._edits.labels(op).inc()
        self._sequence.set(sequence)

    def model(self, name: str, kind: str, graph: str, version: str) -> None:
        """Name the model."""
        self._model.labels(name, kind, graph, version).set(1)

    def size(self, nodes: int, edges: int) -> None:
        """Note the size of the graph."""
        self._nodes.set(nodes)
        self._edges.set(edges)

    def text(self) -> bytes:
        """Return all of it."""
        return generate_latest(self.registry)
