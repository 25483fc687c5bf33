"""``pprop explain``: the nodes that a saved model's prediction came from."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop.cli.errors import UsageError
from pprop.cli.graphs import GraphInput, OtherGraphOption, named_positions
from pprop.cli.models import ModelArgument, check_model, load_model
from pprop.cli.output import Session, check_file, columns, new_file
from pprop.cli.verbs import at_least, option, verb, within

if TYPE_CHECKING:
    from pprop.estimators import Explanation


MOST_CLASSES = 6


class Mode(StrEnum):
    """How rows of the propagation matrix are found."""

    EXACT = "exact"
    FAST = "fast"


@verb(
    "explain",
    "pprop explain model 17",
    "pprop explain model alice bob --top 5 --json",
    "pprop explain model alice --plot alice.png",
    checks=True,
)
def explain(
    session: Session,
    model: ModelArgument,
    nodes: Annotated[
        list[str], typer.Argument(metavar="NODE...", help="Ids; positions from 0 on if the graph has no ids.")
    ],
    graph: OtherGraphOption = None,
    top: Annotated[int, option("Number of contributing nodes to list.", metavar="K", rule=at_least(1))] = 10,
    mode: Annotated[Mode, option("Use whole rows of the matrix (exact) or their large entries (fast).")] = Mode.EXACT,
    eps: Annotated[
        float | None,
        option("Residual of --mode fast: smaller is slower and more accurate.", metavar="EPS", rule=within("(0, 1)")),
    ] = None,
    plot: Annotated[Path | None, option("Draw the contributions: .png or .svg, one node.", metavar="FILE")] = None,
    force: Annotated[bool, option("Replace what is already at --plot.", "--force")] = False,
) -> None:
    """Show which nodes the prediction of a node came from.

    The logits of a node are a sum over nodes, itself included. The table lists the largest terms: the label in the
    training, the share of all terms in absolute values, and the contribution to each class. The last lines are all other
    nodes and the sum. Ensembles and models that propagate between layers (GCN, GAT and others) cannot be explained this
    way.
    """
    origin, checks = None if graph is None else GraphInput(graph), session.checks
    checks.run(check_file, plot, force=force, formats=[".png", ".svg"], option="--plot")
    if eps is not None and mode is not Mode.FAST:
        checks.add(UsageError("--eps belongs to --mode fast: add it, or leave --eps out."))
    if plot is not None:
        if len(nodes) != 1:
            checks.add(UsageError(f"--plot draws one node, and {len(nodes)} are given."))
        from pprop.study.figures.style import check_drawing

        checks.run(check_drawing)
    checks.run(check_model, model, origin)
    checks.settle()
    fitted = load_model(model, origin, session)
    from pprop.estimators import explain as explain_nodes

    explained = explain_nodes(fitted, named_positions(fitted.graph_, nodes), top, mode.value, eps)
    if plot is not None:
        from pprop.study.figures.model import contributions_data, draw_contributions
        from pprop.study.figures.style import save_figure

        figure = draw_contributions(contributions_data(explained[0]))
        with new_file(plot, session, force=force) as stream:
            stream.write(save_figure(figure, plot.suffix.lower()[1:]))
    record: dict[str, Any] = {
        "model": str(model),
        "plot": plot,
        "graph_changed": fitted.graph_changed_,
        "explanations": [one.to_json() for one in explained],
    }
    session.result(record, "\n\n".join(_text(one) for one in explained))


def _text(explanation: Explanation) -> str:
    """Return an explanation as a table under a sentence."""
    order = explanation.value.argsort()[::-1][:MOST_CLASSES].tolist()
    headings = ["node", "label", "share", *(str(explanation.classes[column]) for column in order)]

    def numbers(values: Any) -> list[str]:
        return [f"{values[column]:+.4f}" for column in order]

    rows: list[list[object]] = [
        [name, "" if label is None else label, f"{share:.1%}", *numbers(values)]
        for name, label, share, values in zip(
            explanation.names, explanation.labels, explanation.shares, explanation.contributions, strict=True
        )
    ]
    if explanation.other_count or explanation.other_share:
        rows.append([explanation.other_nodes, "", f"{explanation.other_share:.1%}", *numbers(explanation.others)])
    rows.append([explanation.quantity, "", "", *numbers(explanation.value)])
    lines = [f"Node {explanation.name} is {explanation.prediction}.", "", columns(headings, rows, left=(0, 1))]
    if len(order) < len(explanation.classes):
        lines.append(f"Shown are the {len(order)} largest of {len(explanation.classes)} classes; --json has all.")
    if explanation.mode == "fast":
        lines.append(f"All contributions together are at most {explanation.error:.3g} too small in absolute values.")
    return "\n".join(lines)
