"""The endpoints that read: predictions, explanations, neighbourhoods, searches, diagnostics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from pprop.serve import answers, diagnostics, schemas
from pprop.serve.faults import invalid
from pprop.serve.holder import Holder
from pprop.serve.limits import MOST_CONTRIBUTORS, MOST_FOUND, MOST_NODES, MOST_STEPS
from pprop.serve.view import View
from pprop.serve.work import Json, Worker, checked

_SHOWN = 60  # characters of a wrong name that an answer repeats
AT_ONCE = 20  # predictions that are computed without a thread

AlphaQuery = Annotated[float | None, Query(gt=0, le=1, allow_inf_nan=False)]
StepsQuery = Annotated[int | None, Query(ge=1, le=MOST_STEPS)]
ShareQuery = Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)]
IdQuery = Annotated[str, Query(alias="id", description="The id of a node.")]


def only_known(request: Request) -> None:
    """Refuse a parameter of the query that the endpoint does not have: a filter that is misspelt must not be ignored."""
    methods = request.app.openapi()["paths"][request.url.path]
    known = [one["name"] for operation in methods.values() for one in operation.get("parameters", [])]
    for name in request.query_params:
        if name not in known:
            expected = f"Its parameters: {', '.join(known)}." if known else "It has none."
            raise invalid(f"The query has no parameter {name[:_SHOWN]!r}. {expected}")


def reading_routes(holder: Holder, worker: Worker) -> APIRouter:
    """Return the endpoints, each with its types."""
    router = APIRouter(prefix="/api/v1", tags=["read"], dependencies=[Depends(only_known)])

    @router.get("/model", operation_id="getModel", response_model=schemas.Card, summary="The model card")
    async def model() -> Json:
        await current()
        return Json(await worker.run(holder.card))

    async def current() -> View:
        """Return the present view, which is made anew after edits."""
        return holder.present or await worker.run(holder.refresh)

    @router.get(
        "/search",
        operation_id="searchNodes",
        response_model=schemas.FoundAnswer,
        summary="Nodes by id, name, class, confidence",
    )
    async def search(
        q: Annotated[str, Query(max_length=200, description="Part of an id or a name.")] = "",
        label: Annotated[str | None, Query(description="The known class.")] = None,
        predicted: Annotated[str | None, Query(description="The predicted class.")] = None,
        role: Annotated[
            Literal["training", "validation", "test", "unlabelled"] | None,
            Query(description="What the label is used for: training, early stopping, or only to judge the prediction."),
        ] = None,
        distance: Annotated[str | None, Query(pattern=r"^(unreachable|[0-9]{1,9})$")] = None,
        confidence_from: Annotated[ShareQuery, Query(description="Least probability of the predicted class.")] = 0.0,
        confidence_to: Annotated[
            ShareQuery,
            Query(description="That probability is below this, or 1 where this is 1; at least confidence_from."),
        ] = 1.0,
        order: Annotated[Literal["id", "confidence", "relevance"] | None, Query()] = None,
        limit: Annotated[int, Query(ge=0, le=MOST_FOUND)] = 20,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    ) -> Json:
        steps = None if distance is None else -1 if distance == "unreachable" else int(distance)
        found = await worker.run(
            answers.search,
            await current(),
            q=q,
            label=label,
            predicted=predicted,
            role=role,
            distance=steps,
            confidence=(confidence_from, confidence_to),
            order=order,
            limit=limit,
            offset=offset,
        )
        return Json(found)

    @router.post(
        "/predict",
        operation_id="predictNodes",
        response_model=schemas.PredictionsAnswer,
        summary="Predictions of some nodes",
    )
    async def predict(body: schemas.PredictRequest) -> Json:
        asked = (await current(), body.ids, body.alpha, body.steps)
        if len(body.ids) <= AT_ONCE and body.alpha is None and body.steps is None:
            return Json(checked(answers.predict, *asked))
        return Json(await worker.run(answers.predict, *asked))

    @router.get(
        "/predictions",
        operation_id="predictAllNodes",
        response_class=StreamingResponse,
        summary="Predictions of all nodes, one a line",
        responses={
            200: {
                "description": "One object a line.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
            }
        },
    )
    async def predictions() -> StreamingResponse:
        view = await current()

        async def lines() -> AsyncIterator[bytes]:
            for some in answers.every_prediction(view):
                yield "".join(f"{json.dumps(one, allow_nan=False)}\n" for one in some).encode("ascii")
                await asyncio.sleep(0)  # others get their turn

        return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    @router.get(
        "/explain",
        operation_id="explainNode",
        response_model=schemas.ExplanationAnswer,
        summary="Where a logit came from",
    )
    async def explain(
        key: IdQuery,
        k: Annotated[int, Query(ge=1, le=MOST_CONTRIBUTORS, description="Contributors to name.")] = 20,
        of_class: Annotated[str | None, Query(alias="class", description="Default: the predicted one.")] = None,
        alpha: AlphaQuery = None,
        steps: StepsQuery = None,
    ) -> Json:
        return Json(await worker.run(answers.explain, await current(), key, k, of_class, alpha, steps))

    @router.get(
        "/neighbourhood",
        operation_id="getNeighbourhood",
        response_model=schemas.Neighbourhood,
        summary="The ego graph of a node",
    )
    async def neighbourhood(
        key: IdQuery,
        size: Annotated[int, Query(ge=1, le=MOST_NODES, description="Nodes to show.")] = 40,
        alpha: AlphaQuery = None,
        steps: StepsQuery = None,
    ) -> Json:
        return Json(await worker.run(answers.neighbourhood, await current(), key, size, alpha, steps))

    @router.get(
        "/diagnostics",
        operation_id="getDiagnostics",
        response_model=schemas.Diagnostics,
        summary="Where the model is wrong or unsure",
    )
    async def wrong_or_unsure() -> Json:
        view = await current()
        found: dict[str, Any] = await worker.run(diagnostics.diagnostics, view)
        return Json(found)

    return router
