"""The typer application: its verbs, ``--version``, and what happens to wrong usage."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from pprop._version import __version__
from pprop.cli import (
    build,
    data,
    demo,
    doctor,
    explain,
    live,
    ppr,
    predict,
    propagate,
    serve,
    spark,
    study,
    train,
    tune,
)
from pprop.cli.output import EXIT_CODES
from pprop.cli.verbs import KEEP_LINES, examples, make_app, option, show_help

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
CODES = "\n".join(f"  {code:<4}{text}" for code, text in EXIT_CODES.items())
# typer does not export this class, and older versions take it from click
_UsageError: Any = typer.BadParameter.__base__

app = make_app(
    HELP,
    f"{examples(*EXAMPLES)}\n\n{KEEP_LINES}\nExit codes:\n{CODES}",
    *(demo.demo, train.train, tune.tune, predict.predict, explain.explain, live.live, ppr.ppr, propagate.propagate),
    build.build,
    serve.serve,
    serve.explore,
    doctor.doctor,
)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")
app.add_typer(spark.app, name="spark")


@app.callback(invoke_without_command=True)
def _front(
    context: typer.Context, version: Annotated[bool, option("Print the version and exit.", "--version")] = False
) -> None:
    if version:
        sys.stdout.write(f"pprop {__version__}\n")
        raise typer.Exit
    show_help(context)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code. Wrong usage is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.isatty():
            reconfigure(errors="backslashreplace")  # a character that the terminal cannot show must not be an error
        elif reconfigure is not None:
            reconfigure(encoding="utf-8")  # a file or pipe gets what --out would write
    try:
        code: object = get_command(app).main(list(arguments), prog_name="pprop", standalone_mode=False)
    except _UsageError as error:
        called = "pprop" if error.ctx is None else error.ctx.command_path
        sentence = " ".join(error.format_message().split())
        sys.stderr.write(f"{called}: {sentence} Try: {called} --help\n")
        return int(error.exit_code)
    return code if isinstance(code, int) else 0
