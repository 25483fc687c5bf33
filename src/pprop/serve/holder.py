"""The present view of a served model: always the same, or, of a live graph, made anew after edits."""

from __future__ import annotations

from typing import Any

from pprop.serve.served import Served
from pprop.serve.view import View


class Holder:
    """A model on a graph that does not change."""

    def __init__(self, served: Served) -> None:
        self.served = served

    @property
    def present(self) -> View | None:
        """The view, or None where edits have made it out of date."""
        return self.served.view

    @property
    def ready(self) -> bool:
        """Whether requests can be answered."""
        return True

    def recover(self) -> bool:
        """Try to become ready again, and return whether that worked."""
        return self.ready

    def refresh(self) -> View:
        """Return the view as it is after all edits."""
        return self.served.view

    def card(self) -> dict[str, Any]:
        """Return the model card."""
        return self.served.card(live=False)
