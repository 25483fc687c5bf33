"""The endpoints that imagine changes, and those that make them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from pprop.serve import imagined, schemas
from pprop.serve.faults import Fault
from pprop.serve.holder import Holder
from pprop.serve.live import LiveHolder
from pprop.serve.metrics import Metrics
from pprop.serve.work import Json, Worker

NOT_LIVE = "This server does not take edits. Start it with --live FILE."


def changing_routes(holder: Holder, worker: Worker, metrics: Metrics) -> APIRouter:
    """Return the endpoints, each with its types."""
    router = APIRouter(prefix="/api/v1", tags=["change"])

    def imagine(body: schemas.WhatIfRequest) -> dict[str, Any]:
        remove, add = ([one.model_dump() for one in some] for some in (body.remove, body.add))
        asked = (body.alpha, body.steps, body.k, body.of_class)
        return imagined.what_if(holder.refresh(), body.id, remove, add, *asked)

    def imagine_new(body: schemas.NewNodeRequest) -> dict[str, Any]:
        edges = [edge.model_dump() for edge in body.edges]
        return imagined.predict_new(holder.refresh(), holder.served.parts, body.features, edges)

    @router.post(
        "/predict-new",
        operation_id="predictNewNode",
        response_model=schemas.NewNode,
        summary="The prediction of a node that is not there",
    )
    async def predict_new(body: schemas.NewNodeRequest) -> Json:
        return Json(await worker.run(imagine_new, body))

    @router.post(
        "/what-if",
        operation_id="tryEdges",
        response_model=schemas.WhatIf,
        summary="A prediction with other edges, explained",
    )
    async def what_if(body: schemas.WhatIfRequest) -> Json:
        return Json(await worker.run(imagine, body))

    if isinstance(holder, LiveHolder):
        metrics.edits([], holder.sequence)  # those of a log are there already

    @router.get(
        "/edits",
        operation_id="getEdits",
        response_model=schemas.EditState,
        summary="How many batches of edits were made",
    )
    async def state() -> Json:
        if not isinstance(holder, LiveHolder):
            raise Fault(404, "not_live", NOT_LIVE)
        return Json({"sequence": holder.sequence, "log": holder.log.path.name})

    @router.post("/edits", operation_id="applyEdits", response_model=schemas.Edited, summary="Change the graph")
    async def edit(body: schemas.EditsRequest) -> Json:
        if not isinstance(holder, LiveHolder):
            raise Fault(404, "not_live", NOT_LIVE)
        edits = [one.model_dump() for one in body.edits]
        sequence = await worker.run(holder.edit, edits)
        metrics.edits([one["op"] for one in edits], sequence)
        return Json({"sequence": sequence, "applied": len(edits)})

    return router
