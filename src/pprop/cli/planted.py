"""``pprop data planted``: a labelled graph with planted classes, of any size, as files for ``pprop build``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pprop._validate import check_choice, counted
from pprop.cli.output import Session
from pprop.cli.verbs import option, out_option, verb


@verb(
    "data planted",
    "pprop data planted --nodes 1000000 --out planted",
    "pprop data planted --nodes 1000000 --features words --columns 50000 --seed 3 --out planted",
    panel="Graph",
)
def planted(
    session: Session,
    *,
    nodes: Annotated[int, option("Number of nodes.")],
    mean_degree: Annotated[float | None, option("Edges of a node on average.  [default: 14]")] = None,
    tail: Annotated[float | None, option("Exponent of the degrees' power law, above 2.  [default: 3]")] = None,
    homophily: Annotated[float | None, option("Share of the edges inside classes.  [default: 0.4]")] = None,
    classes: Annotated[int | None, option("Number of classes, of equal size.  [default: 10]")] = None,
    features: Annotated[str, option("normal, words or none.")] = "normal",
    columns: Annotated[int | None, option("Of the features.  [default: 64, words: 2000]")] = None,
    draws: Annotated[int | None, option("Words of a node.  [default: 20]")] = None,
    strength: Annotated[
        float | None,
        option("Length of a class's mean, or share of words of the class's own.  [default: 2.5, words: 0.35]"),
    ] = None,
    seed: Annotated[int, option("Of all that is random.")] = 0,
    out: Annotated[Path, out_option("New folder for edges in Parquet, labels and features in .npy files.", "DIR")],
) -> None:
    """Make a labelled graph with planted classes, of any size, to check accuracy and time with.

    The network alone reaches about 60 % of it by default, APPNP about 85 %. Every file is a function of the options.
    """
    check_choice(features, "features", "pprop data planted", ("normal", "words", "none"))

    from pprop.scale import NormalFeatures, Planted, WordFeatures, write_planted

    about = _given(columns=columns, strength=strength) | (_given(draws=draws) if features == "words" else {})
    kinds = {"normal": NormalFeatures, "words": WordFeatures, "none": lambda: None}
    made = kinds[features](**about)
    shape = _given(mean_degree=mean_degree, tail=tail, homophily=homophily, classes=classes)
    graph = Planted(nodes, features=made, seed=seed, **shape)
    said: set[str] = set()

    def tell(stage: str, _share: float) -> None:
        if stage not in said:
            said.add(stage)
            session.say(f"Writing {stage}")

    files = write_planted(graph, out, progress=tell)
    session.keep(out)
    record: dict[str, Any] = {
        "nodes": graph.nodes,
        "edges_drawn": graph.n_edges,
        "classes": graph.n_classes,
        "seed": seed,
        "edges": files.edges,
        "labels": files.labels,
        "features": files.features,
    }
    text = f"{counted(graph.nodes, 'node')}, {counted(graph.n_edges, 'edge')} drawn: {out}"
    session.result(record, text)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
