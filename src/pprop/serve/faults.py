"""What a request may be refused with: a status, a short code for programs and a sentence for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final


@final
class Fault(Exception):  # noqa: N818  an answer, not a mistake of the server
    """An answer that is no success. The body is ``{"error": code, "message": sentence}``.

    >>> Fault(404, "unknown_node", "There is no node 'x' in the graph.").body
    {'error': 'unknown_node', 'message': "There is no node 'x' in the graph."}
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        return {"error": self.code, "message": self.message}


def unusable(message: str) -> Fault:
    """Return the answer to a request that is sound, and that this model cannot fulfil."""
    return Fault(409, "not_for_this_model", message)


def invalid(message: str) -> Fault:
    """Return the answer to a request whose content is wrong."""
    return Fault(422, "invalid", message)
