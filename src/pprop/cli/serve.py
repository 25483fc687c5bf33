"""``pprop serve`` and ``pprop explore``: a trained model over HTTP, and the page that shows where predictions come from."""

from __future__ import annotations

import shlex
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pprop._errors import DatasetError, Remedy
from pprop._validate import counted
from pprop.cli.errors import FileError, UsageError
from pprop.cli.graphs import GraphInput, OtherGraphOption, example_input
from pprop.cli.models import ModelArgument, check_model, load_model
from pprop.cli.output import Session
from pprop.cli.splits import SplitOptions, class_names
from pprop.cli.verbs import at_least, option, verb, within
from pprop.serve.limits import HOST, PORT, RATE, ServerLimits
from pprop.settings import CRITERION

if TYPE_CHECKING:
    import socket

    from pprop.estimators import NodeClassifier

A_PORT = at_least(0, 2**16 - 1)
HostOption = Annotated[str, option("Address to listen on; any but loopback needs --token.")]
PortOption = Annotated[int, option("Port to listen on; 0 is any that is free.", rule=A_PORT)]
TokenOption = Annotated[
    str | None, option("What requests must show as 'Authorization: Bearer TOKEN'.", envvar="PPROP_TOKEN")
]
LiveOption = Annotated[
    Path | None, option("Take edits of the graph, kept in this log and made again after a restart.", metavar="FILE")
]
AllowOption = Annotated[
    list[str] | None, option("Another name of this server, as behind a proxy; may be repeated.", metavar="NAME")
]
RateOption = Annotated[float, option("Requests a second and client.", rule=within("(0, inf]"))]
EXAMPLE = "recipes"  # what the page calls the bundled example
EXAMPLE_TEST = 0.5  # share of its labelled nodes


@verb(
    "serve",
    "pprop serve model",
    "pprop serve model --live edits.log",
    "pprop serve model --host 0.0.0.0 --token SECRET",
    checks=True,
)
def serve(
    session: Session,
    model: ModelArgument,
    graph: OtherGraphOption = None,
    host: HostOption = HOST,
    port: PortOption = PORT,
    token: TokenOption = None,
    live: LiveOption = None,
    allow_host: AllowOption = None,
    rate: RateOption = RATE,
) -> None:
    """Serve a saved model over HTTP: predictions, explanations, and a page to look at them.

    The page is at the address that is printed, the endpoints are under /api/v1, and /openapi.json describes them. Ends with
    Ctrl-C. Any address but loopback needs a token; it may also be in the environment variable PPROP_TOKEN.
    """
    from pprop.serve.server import bound, check_packages

    origin, checks = None if graph is None else GraphInput(graph), session.checks
    checks.run(check_packages)
    limits = checks.run(ServerLimits, host, port, token, tuple(allow_host or ()), rate)
    checks.run(check_model, model, origin)
    checks.settle()
    assert limits is not None  # otherwise there was an error
    with bound(limits) as made:
        fitted = load_model(model, origin, session)
        _serve(session, fitted, model.resolve().name, limits, made, live)


@verb("explore", "pprop explore", "pprop explore model", "pprop explore cora_ml --port 8000", checks=True)
def explore(
    session: Session,
    what: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL | DATASET]", help="A saved model, or a dataset to train one on first."),
    ] = None,
    graph: OtherGraphOption = None,
    host: HostOption = HOST,
    port: Annotated[int | None, option("Port to listen on.  [default: 8642, or any that is free]", rule=A_PORT)] = None,
    token: TokenOption = None,
    live: LiveOption = None,
    no_browser: Annotated[bool, option("Print the address and open nothing.", "--no-browser")] = False,
) -> None:
    """Open a page that shows predictions and the nodes that they came from.

    Without a model the default one is trained on the bundled recipes first, in less than a minute. Ends with Ctrl-C.
    """
    from pprop.serve.server import bound, check_packages

    checks, folder = session.checks, None if what is None else Path(what)
    checks.run(check_packages)
    limits = checks.run(ServerLimits, host, PORT if port is None else port, token)
    origin, saved = None if graph is None else GraphInput(graph), folder is not None and _is_model(folder)
    if folder is not None and saved:
        checks.run(check_model, folder, origin)
    elif origin is not None:
        which = "no model is given" if what is None else f"{what!r} is none"
        checks.add(UsageError(f"--graph is the graph of a saved model, and {which}."))
    if what is not None and not saved:
        checks.run(_check_what, what)
    checks.settle()
    assert limits is not None  # otherwise there was an error
    with bound(limits, any_port=port is None) as made:  # a port in use is said before the training
        if folder is not None and saved:
            fitted = load_model(folder, origin, session)
            title = folder.resolve().name
        else:
            fitted, title = _trained(session, what), f"APPNP on {what or EXAMPLE}"
        _serve(session, fitted, title, limits, made, live, browser=not no_browser)


def _is_model(folder: Path) -> bool:
    """Return whether this is a saved model, or was one before a file of it was lost."""
    return (folder / "weights.safetensors").exists() or (folder.is_dir() and (folder / "manifest.json").exists())


def _check_what(what: str) -> None:
    """Refuse what is neither a saved model, which was looked at before, nor a graph to train one on."""
    from pprop.datasets import DATASETS

    try:
        GraphInput(what).check()
    except (DatasetError, FileError) as error:
        there = "The folder {} holds no saved model" if Path(what).is_dir() else "There is no saved model {}"
        text = f"{there.format(repr(what))}, and no dataset has this name. The datasets: {', '.join(DATASETS)}."
        save = Remedy(f"A model is saved with: pprop train GRAPH --out {shlex.quote(what)}")
        kind = DatasetError if Path(what).exists() else FileError
        raise kind(text, remedies=[*error.remedies, save]) from None


def _trained(session: Session, what: str | None) -> NodeClassifier:
    """Train the default model on a graph, by default the bundled example."""
    from sklearn.exceptions import ConvergenceWarning

    from pprop.estimators import APPNPClassifier

    origin = example_input() if what is None else GraphInput(what)
    graph = origin.read()
    drawn = SplitOptions(test=EXAMPLE_TEST if what is None else None).draw(graph, origin)
    split = drawn.split
    labels = class_names(graph)
    session.say(f"No model is given: training APPNP on {EXAMPLE if what is None else origin.title}, {graph}.")
    criterion = CRITERION.default if origin.path is None else "plateau"
    fitted = APPNPClassifier(graph, random_state=drawn.seed, criterion=criterion, verbose=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(split.train, labels[split.train], stopping=(split.stopping, labels[split.stopping]))
    fitted.fitted_ = replace(fitted.fitted_, source=origin.saved)
    accuracy = float(fitted.score(split.evaluation, labels[split.evaluation]))
    seconds = fitted.record_.seconds
    session.say(f"Trained in {seconds:.0f} seconds; {accuracy:.1%} of {len(split.evaluation):,} test nodes are right.")
    return fitted


def _serve(
    session: Session,
    fitted: NodeClassifier,
    title: str,
    limits: ServerLimits,
    made: socket.socket,
    live: Path | None,
    *,
    browser: bool = False,
) -> None:
    """Serve a fitted model on a socket until it is interrupted."""
    from pprop.serve import server
    from pprop.serve.app import create_app
    from pprop.serve.holder import Holder
    from pprop.serve.live import LiveHolder
    from pprop.serve.names import names_of
    from pprop.serve.served import Served

    served = Served(fitted.fitted_, title, *names_of(fitted.graph_, fitted.source_))
    if live is not None:
        session.say("Preparing edits: what they need is compiled before the server is ready.")
    holder = Holder(served) if live is None else LiveHolder(served, live)
    if isinstance(holder, LiveHolder):
        cut = " A half line at its end was never acknowledged and is cut off." if holder.log.cut else ""
        session.say(f"{counted(holder.sequence, 'batch', 'batches')} of edits in {str(live)!r}.{cut}")
    app = create_app(holder, limits)
    address = server.address_of(made, limits)
    record: dict[str, Any] = {"address": address, "model": title, "nodes": fitted.graph_.n_nodes}
    shown = address if limits.token is None else f"{address}#token=TOKEN"
    session.result(record, f"{title}: {shown}")
    sys.stdout.flush()
    session.say("Ctrl-C ends it.")

    def started() -> None:
        if browser:
            import webbrowser

            threading.Timer(0.3, webbrowser.open, [address]).start()

    with suppress(KeyboardInterrupt):  # the way to end it
        server.run(app, made, started)
