"""Graphs from the objects of other libraries, and back: the methods of Graph; the work is in the modules beside this.

A module that makes the parts of a Graph is imported when it is needed: it loads pyarrow, or the library of the object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from pprop.graph.attributes import Csr


class Exchange(ABC):
    """What a Graph can be made of, and made into."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, csr: Csr, directed: bool, **fields: Any) -> Self:
        """Make a Graph of parts that are known to be sound."""
