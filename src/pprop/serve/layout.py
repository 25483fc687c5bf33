"""Where the nodes of a neighbourhood are drawn: rings by distance from the centre, then a few rounds of forces.

Nothing is drawn at random: the same neighbourhood has the same picture.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Nodes = NDArray[np.int64]

ROUNDS = 60
_FAR = 3  # rings; nodes further away, or not connected in the picture, are on the last


def positions(count: int, edges: NDArray[np.int64], groups: NDArray[np.int64], size: Values) -> Values:
    """Return the places of the nodes, shape (m, 2), within [-1, 1]; node 0 is the centre, at the origin.

    Parameters
    ----------
    count
        m.
    edges
        Pairs of nodes, shape (e, 2).
    groups
        Of each node, shape (m,): those of one group come side by side.
    size
        Influence of each node, shape (m,): the largest are nearest to the centre within their ring.

    Examples
    --------
    >>> places = positions(3, np.array([[0, 1], [0, 2]]), np.array([0, 0, 1]), np.array([1.0, 0.5, 0.5]))
    >>> places[0], bool(np.abs(places).max() <= 1)
    (array([0., 0.]), True)
    """
    if count == 1:
        return np.zeros((1, 2))
    linked = np.zeros((count, count), dtype=bool)
    linked[edges[:, 0], edges[:, 1]] = linked[edges[:, 1], edges[:, 0]] = True
    np.fill_diagonal(linked, False)
    ring, parent = _rings(linked)
    angle = _angles(ring, parent, groups, size)
    place: Values = ring[:, None].astype(np.float64) * np.column_stack([np.cos(angle), np.sin(angle)])
    place = _settled(place, linked, ring)
    place /= max(float(np.abs(place).max()), 1e-9)
    place[0] = 0.0
    return np.clip(place, -1.0, 1.0)


def _rings(linked: NDArray[np.bool_]) -> tuple[Nodes, Nodes]:
    """Return the distance of every node from node 0, at most `_FAR`, and the neighbour on the way there (0 if none)."""
    count = len(linked)
    ring, parent = np.full(count, _FAR, dtype=np.int64), np.zeros(count, dtype=np.int64)
    seen = np.zeros(count, dtype=bool)
    seen[0], ring[0] = True, 0
    front = np.array([0])
    distance = 0
    while len(front):
        distance += 1
        reached = linked[front] & ~seen
        new = np.flatnonzero(reached.any(axis=0))
        ring[new] = min(distance, _FAR)
        parent[new] = front[reached[:, new].argmax(axis=0)]
        seen[new] = True
        front = new
    return ring, parent


def _angles(ring: Nodes, parent: Nodes, groups: Nodes, size: Values) -> Values:
    """Return an angle for every node: on the first ring groups side by side, further out near the parent."""
    angle = np.zeros(len(ring))
    number = np.arange(len(ring))
    for distance in range(1, _FAR + 1):
        at = np.flatnonzero(ring == distance)
        if not len(at):
            continue
        stray = (parent[at] == 0) & (distance > 1)
        near = np.where(stray, 2 * np.pi, angle[parent[at]]) if distance > 1 else np.zeros(len(at))
        order = np.lexsort((number[at], -size[at], groups[at], near))
        angle[at[order]] = 2 * np.pi * (np.arange(len(at)) + 0.5) / len(at)
    return angle


def _settled(place: Values, linked: NDArray[np.bool_], ring: Nodes) -> Values:
    """Return the places after some rounds of forces: edges pull, all nodes push, and rings hold."""
    spacing = 1.6 / np.sqrt(len(place))  # what nodes keep between each other, in rings
    pull = linked.astype(np.float64)
    pull /= np.maximum(pull.sum(axis=1, keepdims=True), 1.0)
    wanted = ring * (1.0 - 0.1 * (ring - 1))
    for k in range(ROUNDS):
        heat = 0.3 * (1.0 - k / ROUNDS) + 0.02
        squares = (place**2).sum(axis=1)
        push = np.add.outer(squares, squares)
        push -= 2.0 * (place @ place.T)  # squared distances
        np.maximum(push, 1e-4, out=push)
        np.divide(spacing**2, push, out=push)
        np.fill_diagonal(push, 0.0)
        force = push.sum(axis=1)[:, None] * place - push @ place
        force += 0.35 * (pull @ place - place)
        length = np.sqrt(squares)
        force += 0.5 * ((wanted - length) / np.maximum(length, 1e-9))[:, None] * place
        size = np.sqrt((force**2).sum(axis=1))
        place = place + force * np.minimum(1.0, heat / np.maximum(size, 1e-9))[:, None]
        place[0] = 0.0
    return place
