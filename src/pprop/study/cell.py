"""A cell of a study: everything that decides a run's result except its two seeds and the graph's content.

Its model is a user's, or one of the paper, with the published settings as defaults. Nothing here loads torch.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, final

import numpy as np

from pprop import settings as st
from pprop._errors import InputError
from pprop._validate import check_choice, check_int, describe, reject
from pprop.datasets import DATASETS, TEST_SEEDS, VALIDATION_SEEDS
from pprop.settings import Setting


@final
@dataclass(frozen=True)
class ModelKind:
    """A model of the paper.

    Attributes
    ----------
    name
        As in an experiment file.
    title
        As in the paper's tables.
    settings
        What may be set, with the paper's values as defaults; None: the dataset's teleport probability.
    trained
        Whether `pprop.train` takes it, epoch by epoch; otherwise it has its own `fit` and `predict`.
    seeded
        Whether its result depends on the initialisation. If not, there is one run per split.
    needs
        Names of settings, each with the name and the value of another one without which it has no meaning: a cell then
        does not have it.

    Examples
    --------
    >>> MODELS["vanilla_gcn"].title
    'V. GCN'
    >>> sorted(MODELS["jk"].names)
    ['criterion', 'dropout', 'hidden', 'layers', 'learning_rate', 'max_epochs', 'patience', 'penalty']
    """

    name: str
    title: str
    settings: tuple[Setting[Any], ...]
    trained: bool = True
    seeded: bool = True
    needs: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(setting.name for setting in self.settings)

    def defaults(self) -> dict[str, Any]:
        """Return the published value of each setting in its canonical form."""
        values = {setting.name: setting.default for setting in self.settings}
        return {name: None if value is None else self.check(name, value) for name, value in values.items()}

    def check(self, name: str, value: object) -> Any:
        """Return a setting's value in its canonical form, or say what is wrong with the name or the value."""
        if name not in self.names:
            raise InputError(f"unknown setting {name!r} of {self.name}.{nearest(name, self.names)}")
        return self.settings[self.names.index(name)].check(value, self.name)


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known one, or all of them.

    >>> nearest("alhpa", ["alpha", "steps"]), nearest("zzz", ["alpha", "steps"])
    (" Did you mean 'alpha'?", ' Known are: alpha, steps.')
    """
    known = list(known)
    near = difflib.get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    return f" Did you mean {near[0]!r}?" if near else f" Known are: {', '.join(known)}."


def model_kind(name: object) -> ModelKind:
    """Return a model by its name.

    Examples
    --------
    >>> model_kind("apnp")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: unknown model 'apnp'. Did you mean 'appnp'?
    """
    if not isinstance(name, str) or name not in MODELS:
        raise InputError(f"unknown model {name!r}.{nearest(name, MODELS)}")
    return MODELS[name]


def _check_steps(value: object, name: str, model: str) -> int | str:
    if value == "limit":
        return "limit"
    if isinstance(value, str):
        reject(name, model, "an integer of at least 0 or 'limit'", describe(value))
    return st.STEPS.check(value, model)


def _evaluate(*choices: str) -> Setting[str]:
    return st.choice("evaluate", choices[0], choices, "How runs are evaluated; see `pprop.study.run.recipe`.")


_ALPHA = replace(st.ALPHA, default=None)  # that of the dataset
_STEPS_OR_LIMIT = replace(st.STEPS, rule=_check_steps)
_TRAINING = (st.LEARNING_RATE, st.PATIENCE, st.MAX_EPOCHS, st.CRITERION)
_VANILLA_TRAINING = (st.LEARNING_RATE, st.VANILLA_GCN_PATIENCE, st.VANILLA_GCN_MAX_EPOCHS, st.VANILLA_GCN_CRITERION)
_NETWORK = (st.HIDDEN, st.DROPOUT, st.PENALTY, st.FIRST_LAYER)
# Settings that came after rows were published: a cell has one where it differs from its default.
_LATER = (st.FIRST_LAYER, st.FP_READING)
_MATRIX = (st.PROPAGATION_DROPOUT, st.NORMALIZATION, st.SELF_LOOPS)
_GCN = (st.WIDTH, st.GCN_DROPOUT, st.MATRIX_DROPOUT, st.GCN_PENALTY)
_VANILLA_GCN = (st.VANILLA_GCN_WIDTH, st.GCN_DROPOUT, st.VANILLA_GCN_MATRIX_DROPOUT, st.VANILLA_GCN_PENALTY)
_NGCN = (st.NGCN_WIDTH, st.POWERS, st.REPLICAS, st.NGCN_DROPOUT, st.NGCN_PENALTY)
_GAT = (st.HEADS, st.UNITS, st.GAT_DROPOUT, st.GAT_PENALTY)
_JK = (st.JK_WIDTH, st.LAYERS, st.JK_DROPOUT, st.JK_PENALTY)
_FP_ALPHA = st.FP_ALPHA.within(st.POSITIVE_ALPHA)
_FP = (_FP_ALPHA, st.FP_STEPS, st.FP_ROUNDS, st.FP_SHARE, st.INVERSE_PENALTY, st.SELF_LOOPS, st.FP_READING)
_PROPAGATED = ("evaluate", "propagated")
_MLP = (*_NETWORK, *_TRAINING, _evaluate("model", "propagated"), _ALPHA, st.STEPS)
_APPNP = (_ALPHA, _STEPS_OR_LIMIT, *_NETWORK, *_MATRIX, *_TRAINING, _evaluate("model", "network"))
_PPNP = (replace(st.POSITIVE_ALPHA, default=None), *_NETWORK, *_MATRIX, *_TRAINING, _evaluate("model", "network"))
_ALL = (
    ModelKind("appnp", "APPNP", _APPNP),
    ModelKind("ppnp", "PPNP", _PPNP),
    ModelKind("mlp", "MLP", _MLP, needs=(("alpha", *_PROPAGATED), ("steps", *_PROPAGATED))),
    ModelKind("vanilla_gcn", "V. GCN", (*_VANILLA_GCN, *_VANILLA_TRAINING)),
    ModelKind("gcn", "GCN", (*_GCN, *_TRAINING)),
    ModelKind("ngcn", "N-GCN", (*_NGCN, *_TRAINING)),
    ModelKind("gat", "GAT", (*_GAT, *_TRAINING)),
    ModelKind("jk", "JK", (*_JK, *_TRAINING)),
    ModelKind("bootstrapped_fp", "Bt. FP, tuned", _FP, trained=False, seeded=False),
)

# Every model of the paper by name.
MODELS: Mapping[str, ModelKind] = MappingProxyType({kind.name: kind for kind in _ALL})


Splits = Literal["test", "validation"]

# Splits of one kind that an experiment may have.
MOST_SPLITS = 1000

_PAPER: dict[Splits, tuple[int, ...]] = {"test": TEST_SEEDS, "validation": VALIDATION_SEEDS}


@final
@dataclass(frozen=True, order=True)
class Seeds:
    """Which run of a cell: the seed of its split and that of its initialisation.

    Examples
    --------
    >>> Seeds(2144199730, 0) < Seeds(2144199730, 1)
    True
    """

    split: int
    init: int


@final
@dataclass(frozen=True)
class Cell:
    """One model with its settings on one dataset, with one kind of split.

    Attributes
    ----------
    model
        Name of the model in `pprop.study.cell`, or ``"module:function"`` for a model of the user.
    settings
        The model's own settings: plain numbers, strings, booleans, or lists of numbers. Defaults are filled in before a
        cell is made, so that a setting left out and the same setting written out are the same cell.
    dataset
        Name for `load_dataset`.
    splits
        ``"test"`` evaluates on the test nodes; ``"validation"`` on the validation nodes, without test labels in reach.
    per_class
        Training nodes of each class.

    Examples
    --------
    >>> cell = Cell("mlp", {"hidden": [64]}, "citeseer")
    >>> cell.text
    '{"dataset":"citeseer","model":"mlp","per_class":20,"settings":{"hidden":[64]},"splits":"test"}'
    >>> cell == Cell.parse(cell.text), cell.config == Cell.parse(cell.text).config
    (True, True)
    """

    model: str
    settings: Mapping[str, Any] = field(hash=False)
    dataset: str
    splits: Splits = "test"
    per_class: int = 20

    @cached_property
    def text(self) -> str:
        """The cell as one line of JSON with sorted keys: what the store keeps."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps(parts | {"settings": dict(self.settings)}, sort_keys=True, separators=(",", ":"))

    @cached_property
    def config(self) -> str:
        """Hash of that line: the first 16 hexadecimal digits of sha256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @staticmethod
    def parse(text: str) -> Cell:
        """Return the cell of a line."""
        return Cell(**json.loads(text))


@cache
def split_seeds(kind: Splits, count: int) -> tuple[int, ...]:
    """Return the seeds of the first `count` splits of a kind: the paper's, then those of a rule.

    The rule: ``numpy.random.RandomState`` is seeded with the first of the paper's seeds of the kind, and its 32-bit
    outputs are the further seeds, in their order, without those of the paper (of either kind) and without repeats.
    NumPy has promised never to change that stream. The first seeds are the same for every `count`. All splits have the
    known nodes, and hence the test nodes, in common: `paper_split` draws those from another seed.

    Parameters
    ----------
    kind
        ``"test"`` or ``"validation"``.
    count
        At most `MOST_SPLITS`.

    Examples
    --------
    >>> split_seeds("test", 22)[19:]
    (1694925034, 1808494577, 2360825087)
    """
    check_choice(kind, "kind", "split_seeds", tuple(_PAPER))
    check_int(count, "count", "split_seeds", low=1, high=MOST_SPLITS)
    seeds = list(_PAPER[kind])
    taken = {seed for paper in _PAPER.values() for seed in paper}
    random = np.random.RandomState(seeds[0])
    while len(seeds) < count:
        seed = int(random.randint(0, 2**32, size=1, dtype=np.uint32)[0])
        if seed not in taken:
            taken.add(seed)
            seeds.append(seed)
    return tuple(seeds[:count])


def check_dataset(name: object) -> str:
    """Return the name of a dataset.

    Examples
    --------
    >>> check_dataset("cora")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: unknown dataset 'cora'. Did you mean 'cora_ml'?
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise InputError(f"unknown dataset {name!r}.{nearest(name, DATASETS)}")
    return name


def fill_settings(model: str, settings: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """Return all settings of a model on a dataset: those given, checked, and the published ones for the rest.

    Examples
    --------
    >>> fill_settings("appnp", {"hidden": 32}, "ms_academic")["alpha"]
    0.2
    >>> fill_settings("mlp", {"alpha": 0.1}, "citeseer")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'alpha' parameter of mlp has no meaning without evaluate = 'propagated'.
    """
    kind = model_kind(model)
    given = {name: kind.check(name, value) for name, value in settings.items()}
    check_dataset(dataset)
    if fault := impossible(kind, given):
        raise InputError(fault[1])
    filled = kind.defaults() | given
    if filled.get("alpha", 0.0) is None:
        filled["alpha"] = DATASETS[dataset].recommended.alpha
    without = [name for name, other, value in kind.needs if filled[other] != value]
    without += [setting.name for setting in _LATER if filled.get(setting.name) == setting.default]
    return {name: value for name, value in filled.items() if name not in without}


def impossible(kind: ModelKind, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return which of the checked settings cannot be with the others, and a sentence that says why; None if all can.

    Examples
    --------
    >>> impossible(MODELS["appnp"], {"alpha": 0.0, "steps": "limit", "normalization": "row"})
    ('normalization', "The limit of appnp without teleport is known for normalization = 'sym' alone.")
    """
    wanted = kind.defaults() | dict(given)
    for name, other, value in kind.needs:
        if name in given and wanted[other] != value:
            return name, f"The {name!r} parameter of {kind.name} has no meaning without {other} = {value!r}."
    no_teleport = wanted.get("steps") == "limit" and wanted["alpha"] == 0
    if no_teleport and wanted["normalization"] != "sym":
        return "normalization", f"The limit of {kind.name} without teleport is known for normalization = 'sym' alone."
    return None


def make_cell(
    model: str, settings: Mapping[str, Any], dataset: str, splits: Splits = "test", per_class: int = 20
) -> Cell:
    """Return a cell with all its settings, in the one form that equal computations share.

    APPNP with infinitely many steps and a teleport probability is PPNP, and becomes that cell.

    Examples
    --------
    >>> cell = make_cell("appnp", {"steps": "limit"}, "cora_ml")
    >>> cell == make_cell("ppnp", {}, "cora_ml")
    True
    """
    filled = fill_settings(model, settings, dataset)
    check_choice(splits, "splits", "a cell", ("test", "validation"))
    check_int(per_class, "per_class", "a cell", low=1)
    if model == "appnp" and filled["steps"] == "limit" and filled["alpha"] > 0:
        model = "ppnp"
        del filled["steps"]
    return Cell(model, filled, dataset, splits, per_class)


def is_original(cell: Cell) -> bool:
    """Return whether a cell is bootstrapped feature propagation as its authors' code has it, and not our tuned one.

    >>> is_original(Cell("bootstrapped_fp", {"reading": "original"}, "citeseer"))
    True
    """
    return cell.settings.get("reading") == "original"


def name_of(cell: Cell) -> str:
    """Return the paper's name of the model of a cell; the address of a user's.

    >>> name_of(Cell("vanilla_gcn", {}, "cora_ml")), name_of(Cell("bootstrapped_fp", {"reading": "original"}, "cora_ml"))
    ('V. GCN', 'Bt. FP')
    """
    if is_original(cell):
        return "Bt. FP"
    return MODELS[cell.model].title if cell.model in MODELS else cell.model


def title_of(cell: Cell) -> str:
    """Return a short name of a cell for people.

    >>> title_of(Cell("vanilla_gcn", {}, "cora_ml")), title_of(Cell("mymodule:build", {}, "pubmed", per_class=5))
    ('V. GCN on cora_ml', 'mymodule:build on pubmed, 5 labels per class')
    """
    name = name_of(cell)
    kind = "" if cell.splits == "test" else ", validation"
    labels = "" if cell.per_class == 20 else f", {cell.per_class} label{'s' * (cell.per_class > 1)} per class"
    return f"{name} on {cell.dataset}{kind}{labels}"
