"""How the words of a command are read: all that is wrong with them is found, not the first alone; and help in sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any, Self, final

import typer
from typer.core import TyperCommand

from pprop._errors import PpropError
from pprop._validate import any_of, listed
from pprop.cli.errors import UsageError

FEW = 10  # options that need no sections
MOST = 3  # options that are proposed in place of an unknown one
ALIKE = 0.8  # two names of options, of which one is a slip of the other


@final
@dataclass(frozen=True)
class Call:
    """What was found wrong while the words of a command were read.

    Attributes
    ----------
    errors
        Options that the command does not have, arguments that are missing, and the like.
    texts
        Values that are not of their option's type, by parameter; the parameter has its default then.
    missing
        Parameters that the command needs and that were not given.
    """

    errors: list[PpropError] = field(default_factory=list[PpropError])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    missing: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, context: typer.Context) -> Self:
        """Return what was found in the words of this context."""
        return context.meta[cls.__name__]


@final
class VerbCommand(TyperCommand):
    """A command that reads all its words before it ends with an error, and whose plain help has sections."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, and leave what is wrong with them in the context; a value that is wrong becomes the default."""
        call = ctx.meta[Call.__name__] = Call()
        parameters: list[Any] = self.get_params(ctx)
        words = known_words(args, parameters, call.errors)
        given, rest, _ = self.make_parser(ctx).parse_args(args=words)
        for each in sorted(parameters, key=lambda one: not one.is_eager):
            try:
                each.handle_parse_result(ctx, given, rest)
            except typer.BadParameter:  # its sentence is one of typer, or of pydantic
                text = given.get(each.name)
                if text is None:
                    kind = each.param_type_name
                    name = each.opts[0] if kind == "option" else each.metavar
                    call.errors.append(UsageError(f"Missing {kind} {name!r}."))
                    call.missing.add(each.name)
                else:
                    call.texts[each.name] = str(text)
                ctx.params[each.name] = each.get_default(ctx)
        if len(rest) == 1 and "nodes" in ctx.params and ctx.params["nodes"] is None and Path(rest[0]).is_file():
            # what is wrong with the columns of both files is found with it, too
            ctx.params["nodes"] = rest.pop()
            call.errors.append(UsageError(f"A node table is given by an option: --nodes {quote(ctx.params['nodes'])}."))
        if rest:
            names = " ".join(each.metavar for each in parameters if each.param_type_name == "argument")
            takes = f"The command takes {names}" if names else "The command takes options alone"
            call.errors.append(UsageError(f"{takes}. Got {listed(rest)}{', too' if names else ''}."))
        ctx.args = []
        return []

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options into a help without rich, in sections where there are many."""
        sections: dict[str, list[tuple[str, str]]] = {}
        parameters: list[Any] = self.get_params(ctx)
        few = sum(each.param_type_name == "option" for each in parameters) <= FEW
        for each in parameters:
            record = each.get_help_record(ctx)
            panel = None if few else getattr(each, "rich_help_panel", None)
            name = "Arguments" if each.param_type_name == "argument" else panel or "Options"
            if record is not None:
                sections.setdefault(name, []).append(record)
        rest = sections.pop("Options", [])
        for name, records in [*sections.items(), ("Options", rest)]:
            with formatter.section(name):
                formatter.write_dl(records)


def known_words(words: Sequence[str], parameters: Sequence[Any], errors: list[PpropError]) -> list[str]:
    """Return the words without options that the command does not have; errors name these.

    An unknown option whose name is surely a slip is read as the option that is meant, so that its value is checked, too.
    The word after any other unknown option is taken for its value, unless an argument would be missing without it.
    """
    options = [each for each in parameters if each.param_type_name == "option"]
    takes_value = {
        name: not (each.is_flag or each.count) for each in options for name in (*each.opts, *each.secondary_opts)
    }
    needed = sum(each.required for each in parameters if each.param_type_name == "argument")
    waiting, kept, arguments, loose = list(words), list[str](), list[str](), list[tuple[int, str]]()
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if word == "--":
            arguments += waiting
            break
        if not word.startswith("-") or word == "-":
            arguments.append(word)
            continue
        if name not in takes_value:
            sure, near = _meant(name, takes_value)
            hint = f" Did you mean {any_of(near)}?" if near else ""
            errors.append(UsageError(f"No such option: {name}.{hint}"))
            follows = bool(waiting) and not waiting[0].startswith("-")
            if sure is None or not takes_value[sure]:
                if follows and not equals:
                    loose.append((len(arguments), waiting.pop(0)))
                continue
            if not equals and not follows:
                continue
            name = sure
        if not takes_value[name]:
            if equals:
                errors.append(UsageError(f"{name} takes no value. Got {value!r}."))
            kept.append(name)
        elif equals:
            kept += [name, value]
        elif waiting and waiting[0] not in takes_value:
            kept += [name, waiting.pop(0)]
        else:
            errors.append(UsageError(f"{name} needs a value."))
    for place, (at, word) in enumerate(loose[: max(needed - len(arguments), 0)]):
        arguments.insert(at + place, word)
    return [*kept, "--", *arguments]


def _meant(name: str, known: Mapping[str, bool]) -> tuple[str | None, list[str]]:
    """Return the option that an unknown one surely is, or None, and those that it may be.

    A word alone is as a rule the name of a column: of several options that begin with it, the one with ``-column`` comes first,
    and one that begins with another word last.

    >>> known = {"--max-epochs": True, "--label-kind": True, "--label-column": True, "--alpha": True}
    >>> _meant("--epochs", known), _meant("--aplha", known), _meant("--labels", known)
    (('--max-epochs', ['--max-epochs']), ('--alpha', ['--alpha']), (None, ['--label-column', '--label-kind']))
    """
    given, long = name.strip("-"), [one.removeprefix("--") for one in known if one.startswith("--")]
    begin = given.rstrip("s") or given
    slips = [
        one
        for one in long
        if set(given.split("-")) <= set(one.split("-"))
        or one.startswith(begin)
        or given.startswith(one)
        or SequenceMatcher(None, given, one).ratio() >= ALIKE
    ]
    slips.sort(key=lambda one: (one != f"{begin}-column", not one.startswith(begin)))
    near = [f"--{one}" for one in (slips or sorted(get_close_matches(given, long)))[:MOST]]
    return (near[0] if len(slips) == 1 else None), near
