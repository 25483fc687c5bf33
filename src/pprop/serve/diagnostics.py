"""Where a model is wrong or unsure: on the test nodes, labelled nodes that are used for neither training nor validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from pprop.serve.view import ROLES, View

UNCERTAIN = 20
BINS = 10


def diagnostics(view: View) -> dict[str, Any]:
    """Return the confusion matrix, accuracies by distance and by confidence, class sizes and the least certain nodes."""
    solved, count = view.default, len(view.classes)
    tested, here = view.tested, [view.codes == k for k in range(count)]
    right = solved.predicted == view.codes
    confusion = np.zeros((count, count), dtype=np.int64)
    np.add.at(confusion, (view.codes[tested], solved.predicted[tested]), 1)
    unsure = np.argsort(solved.confidence, kind="stable")[:UNCERTAIN].tolist()
    return {
        "tested": int(tested.sum()),
        "accuracy": _mean(right[tested]),
        "confusion": confusion.tolist(),
        "classes": [
            {
                "name": name,
                "labelled": int(here[k].sum()),
                **{role: int((here[k] & (view.roles == at)).sum()) for at, role in enumerate(ROLES[:3])},
                "predicted": int((solved.predicted == k).sum()),
            }
            for k, name in enumerate(view.classes)
        ],
        "distance": _by_distance(view, tested, right),
        "confidence": _by_confidence(view, tested, right),
        "uncertain": [view.brief(at, solved) for at in unsure],
    }


def _by_distance(view: View, tested: Any, right: Any) -> list[dict[str, Any]]:
    alone = None if view.alone is None else view.alone == view.codes
    rows: list[dict[str, Any]] = []
    found = sorted(set(view.distance.tolist()), key=lambda steps: (steps < 0, steps))
    for steps in found:
        here = view.distance == steps
        rows.append(
            {
                "distance": None if steps < 0 else steps,
                "nodes": int(here.sum()),
                "tested": int((here & tested).sum()),
                "accuracy": _mean(right[here & tested]),
                "network_accuracy": None if alone is None else _mean(alone[here & tested]),
            }
        )
    return rows


def _by_confidence(view: View, tested: Any, right: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for k in range(BINS):
        least, below = k / BINS, (k + 1) / BINS
        here = view.default.sure(least, below)
        rows.append(
            {
                "from": least,
                "to": below,
                "nodes": int(here.sum()),
                "accuracy": _mean(right[here & tested]),
            }
        )
    return rows


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None
