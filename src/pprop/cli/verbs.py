"""How a verb is declared: groups of options as objects, a session around it, and help in sections."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields
from enum import Enum
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, cast, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from pprop._errors import InputError, PpropError
from pprop._validate import check_choice, check_float, check_int, reject
from pprop.cli.command import Call, VerbCommand
from pprop.cli.errors import WrongValueError
from pprop.cli.output import Session
from pprop.cli.words import Shell
from pprop.settings import BACKEND, OWN_NORMALIZATION, POSITIVE_ALPHA, Setting

KEEP_LINES = "\b"  # tells typer not to fill the paragraph
OUTPUT = "Output"  # the section of --out, --force and --json


Rule = Callable[[object, str, str], object]  # refuses a value; takes the name of its option and that of the verb


def option(
    text: str,
    *names: str,
    metavar: str | None = None,
    panel: str | None = None,
    rule: Rule | None = None,
    **more: Any,
) -> Any:
    """Return a typer option with a line of help; without `names` it is called like its parameter.

    A value that its `rule` refuses is refused before the verb begins.
    """
    made = typer.Option(*names, metavar=metavar, rich_help_panel=panel, help=text, **more)
    made.rule = rule
    return made


def at_least(low: int, high: int | None = None) -> Rule:
    """Return the rule of integers of at least `low`, and at most `high`.

    >>> at_least(1)(3, "top", "explain")
    3
    """
    return lambda value, name, of: check_int(value, name, of, low=low, high=high)


def within(interval: str) -> Rule:
    """Return the rule of numbers in an interval.

    >>> within("(0, 1)")(0.5, "eps", "ppr")
    0.5
    """
    return lambda value, name, of: check_float(value, name, of, interval)


def setting(
    declared: Setting[Any],
    also: str = "",
    prefix: str = "",
    reads: Callable[[str, str], object] | None = None,
    **more: Any,
) -> Any:
    """Return the option of a setting: its line of help, without the marks of a docstring, between two other texts.

    `reads` makes the value of a text, where the option takes one in place of the value; it is given the option's name.
    """

    def rule(value: object, name: str, of: str) -> object:
        """Check a value."""
        return declared.rule(reads(value, name) if reads is not None and isinstance(value, str) else value, name, of)

    return option(prefix + re.sub("``'|'``|`", "", declared.help) + also, rule=rule, **more)


def read_numbers(text: str, option: str, kind: type[int] | type[float]) -> tuple[float, ...]:
    """Return numbers that are typed with commas between them.

    >>> read_numbers("64,32", "hidden", int)
    (64, 32)
    """
    try:
        return tuple(kind(number) for number in text.split(","))
    except ValueError:
        noun = "integers" if kind is int else "numbers"
        raise WrongValueError(f"--{option} takes {noun} separated by commas, not {text!r}.") from None


def out_option(text: str, metavar: str = "FILE") -> Any:
    """Return the option --out of a verb."""
    return option(text, metavar=metavar, panel=OUTPUT)


JsonOption = Annotated[bool, option("Print one JSON object on standard output.", "--json", panel=OUTPUT)]
DebugOption = Annotated[bool, option("Show the traceback of an error.", "--debug")]
NormalizationOption = Annotated[
    str | None,
    option(
        "Normalisation of the propagation: row (means over neighbours), sym (the paper's) or col. With sym and col, logits "
        "grow with the number of neighbours.  [default: sym for a dataset, row for your own graph]",
        rule=OWN_NORMALIZATION.rule,
    ),
]
ForceOption = Annotated[bool, option("Replace what is already at --out.", "--force", panel=OUTPUT)]
ColumnsOption = Annotated[
    bool, option("Name every column in the report, not ten of each kind.", "--columns", panel=OUTPUT)
]
VerboseOption = Annotated[bool, option("Print how much memory the training takes.", "--verbose")]
AlphaOption = Annotated[float, setting(POSITIVE_ALPHA)]
BackendOption = Annotated[str, setting(BACKEND)]
DeviceOption = Annotated[str, option("cpu, or cuda for a GPU.")]


Verb = Callable[[typer.Typer], None]  # adds itself to an application


class Options:
    """A group of options: a dataclass whose fields are annotated like the parameters of a typer command.

    A verb has one parameter for the whole group, so a new option is one new field. `panel` is its section in the help.
    ``Annotated[Group, {"name"}]`` is the group without the option of a field, which keeps its default.
    """

    panel: ClassVar[str]

    @classmethod
    @cache  # several verbs have the group
    def parameters(cls) -> list[inspect.Parameter]:
        """Return the fields as parameters of a function, each in the section of the group."""
        hints = get_type_hints(cls, include_extras=True)
        members: Any = fields(cls)  # pyright: ignore[reportArgumentType]
        return [_parameter(field.name, hints[field.name], field.default, cls.panel) for field in members]

    def words(self) -> list[str]:
        """Return the options that are not at their defaults, as they are typed.

        >>> from pprop.cli.graphs import TableOptions
        >>> TableOptions(nodes="nodes.csv", label_column="topic", directed=True).words()
        ['--nodes', 'nodes.csv', '--label-column', 'topic', '--directed']
        """
        words: list[str] = []
        for field in fields(self):  # pyright: ignore[reportArgumentType]
            value = getattr(self, field.name)
            each = cast("list[object]", value) if isinstance(value, list) else [value]
            for one in each if value != field.default else []:
                words += [f"--{field.name.replace('_', '-')}", *([] if one is True else [str(one)])]
        return words


def verb(
    title: str, *commands: str, notes: str = "", panel: str | None = None, checks: bool = False
) -> Callable[[Callable[..., None]], Verb]:
    """Return a decorator that makes a verb of a function whose first parameter is the `Session`.

    Every parameter that is a group of `Options` becomes the options of the group; ``--json`` and ``--debug`` are added.

    Parameters
    ----------
    title
        How the verb is called, without ``pprop``: "data list".
    commands
        Examples.
    notes
        Text after the examples.
    panel
        The section of the function's own options; without it they are among the common ones, which come last.
    checks
        Whether the function has checks of its own: it adds them to ``session.checks``, which it settles before its work.
        An option whose value cannot be read has its default until then.
    """

    def decorate(function: Callable[..., None]) -> Verb:
        hints = get_type_hints(function, include_extras=True)
        _, *given = inspect.signature(function).parameters.values()
        parameters: list[inspect.Parameter] = []
        groups: dict[str, tuple[type[Options], list[str]]] = {}
        for each in given:
            hint = hints[each.name]
            kind, *left_out = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            if isinstance(kind, type) and issubclass(kind, Options):
                options = [one for one in kind.parameters() if not any(one.name in names for names in left_out)]
                groups[each.name] = kind, [one.name for one in options]
                parameters += options
            else:
                parameters.append(_parameter(each.name, hint, each.default, panel))
        parameters += [_parameter("json", JsonOption, False), _parameter("debug", DebugOption, False)]

        words = _words(parameters)

        def callback(context: typer.Context, **values: Any) -> None:
            with Session(title, json=values.pop("json"), debug=values.pop("debug"), words=words) as session:
                call = Call.of(context)
                for error in (*call.errors, *_wrong_values(parameters, values, call, title)):
                    session.checks.add(error)
                if call.missing or not checks:
                    session.checks.settle()
                session.unread = {*call.texts}
                made = {
                    name: group(**{option: values.pop(option) for option in options})
                    for name, (group, options) in groups.items()
                }
                function(session, **values, **made)
                session.checks.settle()  # where the function has not

        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        callback.__doc__ = function.__doc__
        callback.__annotations__ = {each.name: each.annotation for each in (context, *parameters)}
        callback.__signature__ = inspect.Signature([context, *parameters])  # pyright: ignore[reportFunctionMemberAccess]

        def add_to(app: typer.Typer) -> None:
            epilog = examples(*commands) + (f"\n\n{KEEP_LINES}\n{notes}" if notes else "")
            app.command(title.split()[-1], epilog=epilog, cls=VerbCommand)(callback)

        return add_to

    return decorate


def make_app(summary: str, epilog: str, *verbs: Verb) -> typer.Typer:
    """Return an application of some verbs that prints its help when it is called without one."""
    # plain help starts twice as fast as that of rich
    app = typer.Typer(
        help=summary,
        epilog=epilog,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for each in verbs:
        each(app)
    app.callback(invoke_without_command=True)(show_help)
    return app


def show_help(context: typer.Context) -> None:
    """Print the help of an application that was called without a verb."""
    if context.invoked_subcommand is None:
        sys.stdout.write(f"{context.get_help()}\n")


def examples(*commands: str) -> str:
    """Return the end of a verb's help, each command on its own line.

    >>> examples("pprop demo", "pprop doctor").splitlines()[2:]
    ['  pprop demo', '  pprop doctor']
    """
    heading = "Example:" if len(commands) == 1 else "Examples:"
    return "\n  ".join((f"{KEEP_LINES}\n{heading}", *commands))


def _parameter(name: str, annotation: Any, default: object, panel: str | None = None) -> inspect.Parameter:
    """Return a parameter for typer: an option gets `panel` where it has no section, and its name."""
    kind, info = get_args(annotation)
    if isinstance(info, OptionInfo):
        info = copy(info)
        info.rich_help_panel = info.rich_help_panel or panel
        if info.default is ... and not info.param_decls:  # a name given first is in `default`
            info.param_decls = (f"--{name.replace('_', '-')}",)  # typer 0.27 would take the metavar for it
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def _wrong_values(
    parameters: Sequence[inspect.Parameter], values: Mapping[str, object], call: Call, title: str
) -> Iterator[PpropError]:
    """Yield an error for each value that is not of its option's type, or that the rule of its option refuses."""
    for each in parameters:
        kind, info = get_args(each.annotation)
        rule: Rule | None = getattr(info, "rule", None)
        text = call.texts.get(each.name)
        value = values.get(each.name) if text is None else text
        try:
            if rule is not None and value is not None:
                rule(value, each.name, title)
            if text is not None:
                _refuse(text, kind, each.name, title)
        except InputError as error:
            yield error if text is None else WrongValueError.of(error)


def _refuse(text: str, kind: Any, name: str, title: str) -> None:
    """Raise for a text that is not of a type, with what it must be."""
    (kind,) = [one for one in get_args(kind) if one is not NoneType] or [kind]
    if issubclass(kind, Enum):
        check_choice(text, name, title, [str(member.value) for member in kind])
    reject(name, title, "an integer" if kind is int else "a number", repr(text))


def check_machine(backend: str, device: str) -> None:
    """Refuse a backend or a device that this machine does not have, before any table is read."""
    from pprop.kernels import choose_backend
    from pprop.training.task import check_device

    choose_backend(backend, check_device(device).type, "train")


def _words(parameters: Sequence[inspect.Parameter]) -> Shell:
    """Return the words of errors of a verb with these parameters: what is typed for each, and for its values."""
    names: dict[str, str] = {}
    values: dict[str, str] = {}
    for each in parameters:
        _, info = get_args(each.annotation)
        if isinstance(info, OptionInfo):
            typed = (*(info.param_decls or ()), *([info.default] if isinstance(info.default, str) else []))
            names[each.name] = typed[0].partition("/")[0]
            values[each.name] = info.metavar or "VALUE"
        else:
            names[each.name] = str(info.metavar).removesuffix("...")
    return Shell(names, values)
