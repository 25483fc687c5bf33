"""The typer application: its verbs, ``--version``, and what happens to wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from pprop._version import __version__
from pprop.cli import data, demo, doctor, explain, live, ppr, predict, propagate, study, train, tune
from pprop.cli.output import EXIT_CODES
from pprop.cli.text import KEEP_LINES, examples

__all__ = ["app", "run"]

HELP = """Predict, then propagate: classify the nodes of a graph from their features and a few labels.

A network predicts each node on its own; personalized PageRank spreads the predictions (PPNP and APPNP, ICLR 2019).

Results go to standard output, everything else to standard error; with --json a verb prints exactly one object.
"""
EXAMPLES = (
    "pprop demo",
    "pprop train citeseer --out model",
    "pprop train edges.csv --nodes nodes.csv --label-column topic --out model",
    "pprop predict model --out predictions.csv",
)
EPILOG = (
    examples(*EXAMPLES)
    + f"\n\n{KEEP_LINES}\nExit codes:\n"
    + "\n".join(f"  {n:<4}{text}" for n, text in EXIT_CODES.items())
)

_UsageError: Any = (
    typer.BadParameter.__base__
)  # typer does not hand out its name, and older versions take it from click

app = typer.Typer(
    help=HELP,
    epilog=EPILOG,
    rich_markup_mode=None,  # plain help starts twice as fast
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo", epilog=examples(*demo.EXAMPLES))(demo.demo)
app.command("train", epilog=examples(*train.EXAMPLES))(train.train)
app.command("tune", epilog=examples(*tune.EXAMPLES))(tune.tune)
app.command("predict", epilog=examples(*predict.EXAMPLES))(predict.predict)
app.command("explain", epilog=examples(*explain.EXAMPLES))(explain.explain)
app.command("live", epilog=live.EPILOG)(live.live)
app.command("ppr", epilog=examples(*ppr.EXAMPLES))(ppr.ppr)
app.command("propagate", epilog=examples(*propagate.EXAMPLES))(propagate.propagate)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")
app.command("doctor", epilog=examples(*doctor.EXAMPLES))(doctor.doctor)


@app.callback(invoke_without_command=True)
def _front(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"pprop {__version__}\n")
    elif context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")
    if context.invoked_subcommand is None or version:
        raise typer.Exit


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code. Wrong usage is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.isatty():
            reconfigure(errors="backslashreplace")  # a name outside a terminal's alphabet shall not end the program
        elif reconfigure is not None:
            reconfigure(encoding="utf-8")  # a file or pipe gets what --out would write
    try:
        code: object = get_command(app).main(list(arguments), prog_name="pprop", standalone_mode=False)
    except _UsageError as error:
        verb = "pprop" if error.ctx is None else error.ctx.command_path
        sentence = " ".join(error.format_message().split())
        sys.stderr.write(f"{verb}: {sentence} Try: {verb} --help\n")
        return int(error.exit_code)
    return code if isinstance(code, int) else 0
