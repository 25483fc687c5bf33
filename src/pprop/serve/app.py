"""The application: all endpoints, errors in one form, and the guard around them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pprop._version import __version__
from pprop.serve import schemas
from pprop.serve.changing import changing_routes
from pprop.serve.faults import Fault
from pprop.serve.guard import Guard
from pprop.serve.holder import Holder
from pprop.serve.limits import ServerLimits
from pprop.serve.metrics import Metrics
from pprop.serve.page_files import INDEX, PageFiles
from pprop.serve.reading import reading_routes
from pprop.serve.work import Json, Worker

CODES = {400: "malformed", 404: "not_found", 405: "wrong_method"}
ANSWERS: dict[int | str, dict[str, Any]] = {
    400: {"model": schemas.Error, "description": "The request cannot be read, or is incomplete."},
    401: {"model": schemas.Error, "description": "The token is missing or wrong."},
    403: {"model": schemas.Error, "description": "Another host name, or a request of another site."},
    404: {"model": schemas.Error, "description": "There is no such node, class or endpoint."},
    405: {"model": schemas.Error, "description": "Another method is needed."},
    408: {"model": schemas.Error, "description": "The request did not arrive in time."},
    409: {"model": schemas.Error, "description": "This model cannot do that, or the edit does not fit the graph."},
    413: {"model": schemas.Error, "description": "The body is too large."},
    422: {"model": schemas.Error, "description": "The request is no JSON, or not as it must be."},
    429: {"model": schemas.Error, "description": "Too many requests; Retry-After says when to come again."},
    503: {"model": schemas.Error, "description": "Not ready, too slow or too busy."},
}
_SHOWN = 200


def create_app(
    holder: Holder, limits: ServerLimits, metrics: Metrics | None = None, files: PageFiles | None = None
) -> Guard:
    """Return the application of a served model.

    Parameters
    ----------
    holder
        The model.
    limits
        What is allowed.
    metrics, files
        Where requests are counted, and the files of the page; by default those of pprop.
    """
    counts, pages, worker = metrics or Metrics(), files or PageFiles(), Worker(limits.seconds)
    app = FastAPI(
        title="pprop",
        version=__version__,
        description="A trained model of pprop: predictions, and where they came from.",
        docs_url=None,
        redoc_url=None,
        responses=ANSWERS,
        redirect_slashes=False,
    )
    _handle_errors(app)
    _plain_routes(app, pages, counts, holder, worker)
    app.include_router(reading_routes(holder, worker))
    app.include_router(changing_routes(holder, worker, counts))
    card = holder.card()
    counts.model(card["name"], card["kind"], card["graph"] or "", __version__)
    counts.size(card["nodes"], card["edges"])
    document = app.openapi()
    if limits.token is not None:
        _require_token(document)
    return Guard(app, limits, counts, frozenset([*document["paths"], "/", "/openapi.json"]))


def _plain_routes(app: FastAPI, pages: PageFiles, metrics: Metrics, holder: Holder, worker: Worker) -> None:
    """Add the page, health, readiness and metrics."""

    def file(name: str, request: Request) -> Response:
        found = pages.read(name)
        headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
        if found.tag in [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(found.content, media_type=found.kind, headers=headers)

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return file(INDEX, request)

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        return file(name, request)

    @app.get(
        "/healthz",
        operation_id="getHealth",
        response_model=schemas.Status,
        tags=["state"],
        summary="Whether the server runs",
    )
    async def healthz() -> Json:
        return Json({"status": "ok"})

    @app.get(
        "/readyz",
        operation_id="getReadiness",
        response_model=schemas.Status,
        tags=["state"],
        summary="Whether it can answer",
    )
    async def readyz() -> Json:
        if not (holder.ready or await worker.run(holder.recover)):
            raise Fault(503, "not_ready", "The log of edits cannot be written, so edits are refused. Look at its disk.")
        return Json({"status": "ready"})

    @app.get(
        "/metrics",
        operation_id="getMetrics",
        response_class=Response,
        tags=["state"],
        summary="Counts and times for Prometheus",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus text."}},
    )
    async def numbers() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _handle_errors(app: FastAPI) -> None:
    """Give every error the same form."""

    @app.exception_handler(Fault)
    async def refused(request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, Fault)
        return Json(error.body, error.status, error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        del request, error  # the guard writes it down
        return Json({"error": "failed", "message": "The server has failed at this request, and goes on."}, 500)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: Exception) -> Response:
        del request
        assert isinstance(error, RequestValidationError)
        return Json({"error": "invalid", "message": sentence(error)}, 422)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        texts = {
            404: "There is no such endpoint.",
            405: "This endpoint takes another method.",
            400: "The body of the request cannot be read as JSON.",
        }
        message = texts.get(error.status_code, str(error.detail))
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = allowed(app.openapi(), request.url.path)
        return Json({"error": CODES.get(error.status_code, "refused"), "message": message}, error.status_code, headers)


def allowed(document: dict[str, Any], path: str) -> str:
    """Return the methods of a path as the header Allow names them; what the OpenAPI document leaves out is a file.

    >>> allowed({"paths": {"/edits": {"get": {}, "post": {}}}}, "/edits")
    'GET, HEAD, POST'
    """
    found = {name.upper() for name in document["paths"].get(path, ("get",))}
    return ", ".join(sorted(found | {"HEAD"} if "GET" in found else found))


def sentence(error: RequestValidationError) -> str:
    """Return the first thing that is wrong with a request, in one sentence."""
    # of a value that may be one of several kinds, the kind that it comes nearest to has the error that lies deepest
    first = max(error.errors(), key=lambda one: len(one["loc"]))
    if first["type"] == "json_invalid":
        return "The body of the request is no valid JSON."
    where = ".".join(str(part) for part in first["loc"][1:] if "[" not in str(part))[:_SHOWN]
    what = " ".join(str(first["msg"]).split())[:_SHOWN]
    return f"{where or 'The body'}: {what}."


def _require_token(document: dict[str, Any]) -> None:
    """Say in the OpenAPI document which endpoints need the token."""
    document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        if path != "/healthz":
            for operation in methods.values():
                operation["security"] = [{"token": []}]
