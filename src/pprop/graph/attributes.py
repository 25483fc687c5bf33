"""What a Graph is made of, checked: its matrix in canonical CSR form, features, labels, names and ids; and the digest.
Labels of which nobody says what they are: which texts stand for an unknown label, and which numbers seem to measure something.
`pprop.graph.tables.classes` reads a column of a table; arrays of Python are read where they come in.

Whole numbers as labels
-----------------------
The cells of a column may be codes of classes or measurements, such as scores and ages, and nothing but their number tells
these apart: both may begin at 0 or 1 and leave no number out. Most codes are fewer than twenty, such as 0 and 1 or 1 to 7,
and have several labels each. So with more than `MANY` different numbers, or with more than `FEW` of which most have fewer than
`HANDFUL` labels, a column is refused. With more than `FEW`, or with more than `SOME` of which most have fewer than `HANDFUL`
labels, it is read as classes, with a warning.

An array of integers is one of class codes by the contract of the functions that take it, and graphs of 40 or 70 classes are
common. So it takes both signs: an array is refused with more than `MANY` that have fewer than two labels each. It is read with
a warning with more than `MANY`, or with more than `FEW` of which most have fewer than `HANDFUL` labels. A series of pandas or
polars is the column of a table, and the rule for columns holds.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import numbers
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pprop._errors import Advice, GraphError, InputError, Remedy
from pprop._validate import check_array, check_sequence, check_texts, describe, nearest, reject
from pprop.graph.features.scaling import STORED, DenseRows, Features, row_blocks

# ``indptr`` (n + 1,), ``indices`` (entries,) sorted within rows, ``weights`` (entries,) or None for all ones.
Csr = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]
FORMS = ("NFC", "NFD")  # in which accents are one letter with the one they belong to, or letters of their own
OBJECTS = "Make text of other ids, such as UUIDs: [str(id) for id in ids]."
_ENTRIES = 2**22  # of a matrix that are looked at together
ROUNDING = 1e-12  # a relative difference of weights that two orders of summation explain


@final
@dataclass(frozen=True)
class Recommended:
    """What the paper recommends for one dataset.

    Attributes
    ----------
    alpha
        Teleport probability.
    known
        Size of the set of visible nodes, from which training, stopping and validation nodes are drawn.
    normalization
        Normalisation of the propagation matrix, as for `pprop.transition_matrix`; None: no recommendation.

    Examples
    --------
    >>> Recommended(alpha=0.1, known=1500).alpha
    0.1
    """

    alpha: float
    known: int
    normalization: str | None = None


def frozen(array: NDArray[Any] | None) -> bool:
    """Whether nobody can write to an array, itself or its base; a file that is mapped to be read counts as such.

    >>> frozen(np.arange(3)), frozen(seal(np.arange(3)))
    (False, True)
    """
    holder: Any = array
    mapped = False
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return False
        mapped = mapped or isinstance(holder, np.memmap)
        holder = cast("Any", holder.base)
    return holder is None or isinstance(holder, bytes) or (mapped and isinstance(holder, mmap.mmap))


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` read-only; one that can still be written to elsewhere is copied first.

    >>> freeze(np.arange(3)).flags.writeable
    False
    """
    if not frozen(array):
        return seal(array.copy())
    return array.view(np.ndarray) if isinstance(array, np.memmap) else array


def seal(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array without other users read-only, in place and with its bases, and return it.

    >>> seal(np.arange(3)[:2]).base.flags.writeable
    False
    """
    holder: Any = array
    while isinstance(holder, np.ndarray):
        holder.flags.writeable = False
        holder = cast("Any", holder.base)
    return array


def share(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a new object around the arrays of a canonical matrix, so that setting its attributes changes nothing else.

    >>> matrix = sparse.csr_array([[0, 2.0], [0, 0]])
    >>> share(matrix) is matrix, np.shares_memory(share(matrix).data, matrix.data)
    (False, True)
    """
    shared = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    shared.has_canonical_format = True  # known, and would be found out again by a pass over the entries
    return shared


def canonical_csr(adjacency: object, function: str) -> Csr:
    """Validate a square sparse matrix and return it with sorted rows, summed duplicates and no stored zeros.

    >>> canonical_csr(sparse.csr_array([[0, 2.0], [0, 0]]), "Graph.from_scipy")
    (array([0, 1, 1]), array([1], dtype=int32), array([2.]))
    """
    if not sparse.issparse(adjacency):
        reject("adjacency", function, "a scipy sparse matrix", describe(adjacency), error=GraphError)
    matrix: Any = adjacency
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        reject("adjacency", function, "a square matrix", f"shape {matrix.shape}", error=GraphError)
    if matrix.shape[0] == 0:
        reject("adjacency", function, "a matrix with at least one node", "an empty matrix", error=GraphError)
    if matrix.shape[0] > np.iinfo(np.int32).max:
        expected = f"a matrix with at most {np.iinfo(np.int32).max} nodes"
        reject("adjacency", function, expected, f"shape {matrix.shape}", error=GraphError)
    if matrix.dtype.kind not in "buif":
        reject("adjacency", function, "a matrix of real numbers", f"dtype {matrix.dtype}", error=GraphError)
    csr = sound_csr(matrix, "adjacency", function).astype(np.float64, copy=False)
    csr.sum_duplicates()  # first, as scipy does so on the way from some forms, and as a sum may be infinite
    csr.eliminate_zeros()
    if not np.isfinite(csr.data).all():
        reject("adjacency", function, "a matrix of finite weights", "NaN or infinity", error=GraphError)
    negative = csr.data[csr.data < 0]
    if negative.size:
        got = f"a weight of {negative[0]:g}"
        reject("adjacency", function, "a matrix of non-negative weights", got, error=GraphError)
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), unit_weights(csr.data)


def sound_csr(matrix: Any, parameter: str, function: str) -> sparse.csr_array:
    """Return a copy in CSR form whose every index is in range, which scipy does not check by itself."""
    try:
        own = matrix.copy()  # the check tidies up what it looks at; some matrices are refused by the copy already
        if hasattr(own, "check_format"):  # before any conversion, which would write where a wrong index points
            own.check_format(full_check=True)
        return sparse.csr_array(own)
    except (TypeError, ValueError) as error:
        reject(parameter, function, "a sound sparse matrix", f"an inconsistent one ({error})", error=GraphError)


def count_loops(indptr: NDArray[np.int64], indices: NDArray[np.int32]) -> int:
    """Return how many entries are on the diagonal, some rows at a time.

    >>> count_loops(np.array([0, 2, 3]), np.array([0, 1, 0], dtype=np.int32))
    1
    """
    found, n, row = 0, len(indptr) - 1, 0
    while row < n:
        start = int(indptr[row])
        end = max(int(np.searchsorted(indptr, start + _ENTRIES, side="right")) - 1, row + 1)  # rows up to it
        rows = np.repeat(np.arange(row, end, dtype=np.int32), np.diff(indptr[row : end + 1]))
        found += int(np.count_nonzero(rows == indices[start : int(indptr[end])]))
        row = end
    return found


def symmetrized(csr: Csr) -> Csr | None:
    """Return a canonical matrix as its own transpose to the last bit, or None where they differ by more than rounding.

    Of two weights that differ by rounding the larger counts.

    >>> symmetrized(canonical_csr(sparse.csr_array([[0, 1.0], [1 - 1e-14, 0]]), "Graph.from_scipy"))
    (array([0, 1, 2]), array([1, 0], dtype=int32), None)
    """
    indptr, indices, weights = csr
    values, shape = np.ones(len(indices)) if weights is None else weights, (len(indptr) - 1, len(indptr) - 1)
    transpose = sparse.csr_array((values, indices, indptr), shape=shape).T.tocsr()
    same_structure = np.array_equal(indptr, transpose.indptr) and np.array_equal(indices, transpose.indices)
    if not same_structure or not np.allclose(values, transpose.data, rtol=ROUNDING, atol=0.0):
        return None
    return csr if weights is None else (indptr, indices, unit_weights(np.maximum(weights, transpose.data)))


def unit_weights(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return None where all weights are one, as a Graph keeps them.

    >>> unit_weights(np.ones(2)) is None
    True
    """
    return None if (values == 1.0).all() else values


def check_fields(fields: Mapping[str, Any], n: int, function: str, known: Features | None = None) -> dict[str, Any]:
    """Return the fields of a graph with n nodes besides its matrix, each checked, in canonical form and read-only.

    `known` features come from another graph, and are sound.
    """
    for field, kind, expected in (("name", str, "a str"), ("recommended", Recommended, "a pprop.graph.Recommended")):
        if not isinstance(fields[field], kind | None):
            reject(field, function, f"{expected} or None", describe(fields[field]))
    features, labels, ids = (fields[field] for field in ("features", "labels", "ids"))
    kept = None if features is None else check_features(features, n, function, known)
    classes = check_names(fields["class_names"], "class_names", function)
    width = 0 if kept is None else kept.shape[1]
    return {
        **fields,
        "features": kept,
        "class_names": classes,
        "labels": None if labels is None else check_labels(labels, n, classes, function),
        "ids": None if ids is None else check_ids(ids, n, function),
        "feature_names": check_names(fields["feature_names"], "feature_names", function, width),
    }


def check_features(features: object, n: int, function: str, known: Features | None = None) -> Features:
    """Return features of n nodes, finite and read-only, of a type in which they are kept; `known` are sound already.

    Dense ones keep float16, float32, float64, int8 and uint8; others, and sparse ones, become float32, or float64 if they
    were floats of at least that size.
    """
    expected = f"an array of finite numbers with {n} rows"
    sparse_given = sparse.issparse(features)
    array: Any = features if sparse_given else check_array(features, "features", function, expected, GraphError)
    wrong_rank = array.ndim != 2 if sparse_given else array.ndim < 2
    if wrong_rank or array.shape[0] != n or array.dtype.kind not in "buif":
        reject("features", function, expected, array, error=GraphError)
    if known is not None and features is known:
        parts = (known,) if isinstance(known, np.ndarray) else (known.data, known.indices, known.indptr)
        if all(map(frozen, parts)):
            return known
    wide = array.dtype.kind == "f" and array.dtype.itemsize >= 8
    kept: Any = sound_csr(array, "features", function) if sparse_given else array
    stays = not sparse_given and array.dtype in STORED
    kept = kept.astype(array.dtype if stays else np.float64 if wide else np.float32, copy=False)
    if sparse_given:
        kept.sum_duplicates()
        kept.eliminate_zeros()
    check_finite(kept, function)
    if not sparse_given:
        return freeze(kept) if kept is array else seal(kept)
    kept = share(kept)  # the same arrays, but for indices wider than they need to be
    for part in (kept.data, kept.indices, kept.indptr):
        seal(part)
    return kept


def check_finite(features: Features, function: str) -> None:
    """Refuse NaN and infinities; say how many there are, and where the first is."""
    if features.dtype.kind != "f":
        return
    values: Any = features if isinstance(features, np.ndarray) else features.data
    count, first = 0, -1
    for rows in row_blocks(values.shape):
        part: NDArray[np.bool_] = np.isfinite(values[rows])
        if not part.all():
            if first < 0:
                first = rows.start * (part.size // len(part)) + int(part.argmin())
            count += part.size - int(np.count_nonzero(part))
    if not count:
        return
    if isinstance(features, np.ndarray):
        place = tuple(int(at) for at in np.unravel_index(first, features.shape))
        value = features[place]
    else:
        place = (int(np.searchsorted(features.indptr, first, side="right")) - 1, int(features.indices[first]))
        value = features.data[first]
    where = f"in row {place[0]}, column {place[1]}" if len(place) == 2 else f"at index {place}"
    got = f"{'' if count == 1 else f'{count} such values, the first of them '}{float(value)} {where}"
    remedy = "Fill or leave out what is missing, for instance with numpy.nan_to_num." if np.isnan(value) else ""
    reject("features", function, "free of NaN and infinity", got, remedy=remedy, error=GraphError)


def check_labels(labels: object, n: int, class_names: tuple[str, ...] | None, function: str) -> NDArray[np.int64]:
    """Return the class index of each of n nodes, -1 where unknown, as a read-only array."""
    expected = f"an integer array of shape ({n},), with -1 for unknown"
    array = check_array(labels, "labels", function, expected, GraphError)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        reject("labels", function, expected, array, error=GraphError)
    high = n if class_names is None else len(class_names)
    if array.min() < -1 or array.max() >= high:
        bad = array.min() if array.min() < -1 else array.max()
        expected = f"an array of class indices from 0 to {high - 1}, or -1" if high else "an array of -1 for no classes"
        reject("labels", function, expected, f"the label {bad}", error=GraphError)
    return seal(array.astype(np.int64))


def check_names(names: object, parameter: str, function: str, width: int | None = None) -> tuple[str, ...] | None:
    """Return the names of classes or features as a tuple of str, `width` of them; numbers may be names."""
    if names is None:
        return None
    expected = "a sequence of names, or None"
    found = check_sequence(names, parameter, function, expected, GraphError)
    for index, name in enumerate(found):
        if not isinstance(name, str | numbers.Real):
            reject(parameter, function, expected, f"{describe(name)} at index {index}", error=GraphError)
    texts = tuple(str(name) for name in found)
    check_texts(texts, parameter, function, GraphError)  # they are written, and used as labels, as arrays
    if width is not None and len(texts) != width:
        expected = f"a sequence of {width} names, one per feature"
        reject(parameter, function, expected, f"{len(texts)} names", error=GraphError)
    return texts


def check_ids(ids: object, n: int, function: str) -> NDArray[Any]:
    """Return distinct ids as a read-only array of integers or text, shape (n,).

    >>> check_ids([30, 10], 2, "Graph.from_scipy")
    array([30, 10])
    """
    expected = f"an array of {n} integers or strings"
    given = check_array(ids, "ids", function, expected, GraphError)
    array = _as_ids(ids, function, GraphError)
    if array is None or array.shape != (n,):
        remedy = OBJECTS if array is None and given.dtype.kind == "O" else ""
        reject("ids", function, expected, describe(given), remedy=remedy, error=GraphError)
    values, counts = np.unique(array, return_counts=True)
    if len(values) != n:
        got = f"the id {values[counts > 1][0].item()!r} more than once"
        reject("ids", function, "an array of distinct ids", got, error=GraphError)
    return freeze(array)


def look_up(ids: object, index: Mapping[object, int], function: str, parameter: str = "ids") -> NDArray[np.int64]:
    """Return the positions of `ids`, shape (m,).

    >>> look_up(["b"], {"a": 0, "b": 1}, "positions")
    array([1])
    """
    expected = "a one-dimensional array of node ids, all integers or all strings"
    given = check_array(ids, parameter, function, expected)
    wanted = _as_ids(ids, function, InputError)
    if wanted is None:
        remedy = OBJECTS if given.dtype.kind == "O" else ""
        reject(parameter, function, expected, describe(ids) if given.ndim == 0 else describe(given), remedy=remedy)
    found = [index.get(key, -1) for key in wanted.tolist()]
    if -1 in found:
        at = found.index(-1)
        key = wanted[at].item()
        remedy = known_as(key, index)
        got = f"the unknown id {describe(key)} at index {at}"
        reject(parameter, function, "an array of ids of this graph", got, remedy=remedy)
    return np.asarray(found, dtype=np.int64)


def known_as(key: object, index: Mapping[object, int]) -> str:
    """Return what to do about an unknown id, where others are like it: of another type, Unicode form or spelling.

    >>> known_as("ann", {"Ann": 0, "bob": 1}), known_as(7, {"7": 0})
    ("Did you mean 'Ann'?", 'The ids of this graph are text.')
    """
    if any(type(known) is not type(key) for known in itertools.islice(index, 1)):
        return "The ids of this graph are " + ("integers." if isinstance(key, str) else "text.")
    if isinstance(key, str) and not key.isascii():
        for form in FORMS:
            if unicodedata.normalize(form, key) in index:
                other = "The graph has the same letters in another Unicode form: pass "
                return f"{other}unicodedata.normalize({form!r}, id) in place of the id."
    return nearest(str(key), (str(known) for known in index), 3)


def _as_ids(ids: object, function: str, error: type[InputError]) -> NDArray[Any] | None:
    """Return ids as an array of integers or text, shape (m,), or None where they are something else.

    The items of a list are examined one by one, as numpy makes text of ``["a", 1]`` and integers of ``[7, True]``; so
    are those of an array of objects, which is how pandas stores text.
    """
    if isinstance(ids, np.ndarray) and cast("NDArray[Any]", ids).dtype.kind in "iuU":
        array = cast("NDArray[Any]", ids)
        return np.asarray(array) if array.ndim == 1 else None
    objects = np.asarray(ids, dtype=object)
    if objects.ndim != 1:
        return None
    keys: list[object] = objects.tolist()
    if all(isinstance(key, str) for key in keys):
        return check_texts(cast("list[str]", keys), "ids", function, error)
    integers = [int(key) for key in keys if isinstance(key, numbers.Integral) and not isinstance(key, bool)]
    try:
        array = np.asarray(integers, dtype=np.uint64 if max(integers, default=0) >= 2**63 else np.int64)
    except OverflowError:
        return None
    return array if len(integers) == len(keys) else None


def content_digest(parts: dict[str, NDArray[Any] | DenseRows | None]) -> str:
    """Return 32 hex digits of named arrays, in the order given, the same on every machine; None counts as absent.

    Rows count as the float32 numbers that are read of them.

    >>> content_digest({"a": np.arange(2)}) == content_digest({"a": np.arange(2), "b": None})
    True
    """
    digest = hashlib.sha256(b"pprop graph 2")
    for name, value in parts.items():
        if value is not None:
            dtype = np.dtype("<f4") if isinstance(value, DenseRows) else value.dtype.newbyteorder("<")
            held = value if isinstance(value, DenseRows) else np.atleast_1d(value)
            digest.update(f"{name} {dtype.str} {held.shape}".encode())
            for rows in row_blocks(held.shape):
                part = held.block(rows) if isinstance(held, DenseRows) else held[rows]
                digest.update(np.ascontiguousarray(part, dtype).data)
    return digest.hexdigest()[:32]


def feature_parts(features: Features | DenseRows | None) -> dict[str, NDArray[Any] | DenseRows | None]:
    """Return the arrays that make up features, dense or sparse, for the digest."""
    if features is None or isinstance(features, DenseRows):
        return {"features": features}
    if isinstance(features, np.ndarray):  # small types count as what they were converted to before they were kept
        return {"features": features if features.dtype.itemsize >= 4 else DenseRows(features)}
    return {
        "features.shape": np.asarray(features.shape, dtype=np.int64),  # columns at the end may be empty
        "features.indptr": features.indptr.astype(np.int64),
        "features.indices": features.indices.astype(np.int32),
        "features.data": features.data,
    }


def id_part(ids: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return ids as bytes, so that the width of their type does not count; 1 and "1" differ.

    >>> bytes(id_part(np.array(["a", "bc"])))
    b'text 1:a2:bc'
    """
    if ids is None:
        return None
    kind = "text" if ids.dtype.kind == "U" else "integers"
    keys = "".join(f"{len(key)}:{key}" for key in map(str, ids.tolist()))  # lengths, as an id may hold any character
    return np.frombuffer(f"{kind} {keys}".encode("utf-8", "surrogatepass"), dtype=np.uint8)


LabelKind = Literal["auto", "category"]
LABEL_KINDS: tuple[LabelKind, ...] = ("auto", "category")

# Texts that stand for an unknown label.
MISSING_LABELS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", "-1")


MANY = 50  # different numbers
FEW = 20
SOME = 10
HANDFUL = 5  # labels of one number

Doubt = Literal["none", "perhaps", "surely"]


def nearly_distinct(n_values: int, n_labels: int) -> bool:
    """Whether labels have nearly as many values as there are labels: more than `FEW`, each for fewer than two on average.

    >>> nearly_distinct(30, 59), nearly_distinct(30, 60), nearly_distinct(3, 3)
    (True, False, False)
    """
    return n_values > FEW and 2 * n_values > n_labels


def doubt_of_numbers(counts: NDArray[np.int64], *, codes: bool) -> Doubt:
    """Return whether whole numbers, given as labels, seem to measure something; "surely" is no class at all.

    Parameters
    ----------
    counts
        The labels of each number that occurs, shape (k,).
    codes
        Whether whoever gives numbers here means codes of classes by contract, as in an array; a column may hold anything.

    Examples
    --------
    >>> seven, months, scores, ages = np.full(7, 3), np.full(12, 3), np.full(47, 3), np.full(80, 40)
    >>> [doubt_of_numbers(counts, codes=False) for counts in (seven, months, scores, ages)]
    ['none', 'perhaps', 'surely', 'surely']
    >>> [doubt_of_numbers(counts, codes=True) for counts in (seven, months, scores, ages)]
    ['none', 'none', 'perhaps', 'perhaps']
    """
    n, distinct = len(counts), nearly_distinct(len(counts), int(counts.sum()))
    rare = bool(n) and float(np.median(counts)) < HANDFUL
    if codes:
        return "surely" if n > MANY and distinct else "perhaps" if n > MANY or (n > FEW and rare) else "none"
    return "surely" if n > MANY or (n > FEW and rare) else "perhaps" if n > FEW or (n > SOME and rare) else "none"


def check_codes(
    labels: NDArray[Any],
    parameter: str,
    function: str,
    *,
    error: Any = InputError,
    remedy: str = "",
    given: object = None,
) -> Advice | None:
    """Refuse integers that seem to be a quantity; return what to warn of where they may be one.

    Parameters
    ----------
    labels
        Integers, shape (m,), all of them known; of any other type is nothing to check.
    parameter, function, error
        For an error.
    remedy
        How to say that they are classes, where `parameter` cannot be text.
    given
        The labels as they came: a series is the column of a table, and one of categories holds classes.

    Examples
    --------
    >>> check_codes(np.arange(2002), "y", "fit")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'y' parameter of fit must be one class per node. Got 2,002 different numbers for 2,002 labels ...
    >>> print(check_codes(np.arange(90) % 30, "y", "fit"))
    The 30 different numbers among 90 labels are read as classes, and most have fewer than 5 labels. ...
    """
    if labels.dtype.kind not in "iu" or _holds_categories(given):
        return None
    counts = np.unique(labels, return_counts=True)[1]
    one_each = given is not None and nearly_distinct(len(counts), len(labels))  # as text it would be refused
    insist = remedy or f"If they are codes of classes, pass {_as_classes(given, parameter, one_each=one_each)}."
    match doubt_of_numbers(counts, codes=not is_column(given)):
        case "surely":
            got = f"{len(counts):,} different numbers for {len(labels):,} labels"
            ranges = "pprop predicts classes, not quantities: divide the numbers into a few ranges."
            advice = Remedy(f"{ranges} {insist}", shell=ranges)
            reject(parameter, function, "one class per node", got, remedy=advice, error=error)
        case "perhaps":
            told = f"The {len(counts):,} different numbers among {len(labels):,} labels are read as classes"
            ranges = "If they measure something, divide them into a few ranges."
            rare = f", and most have fewer than {HANDFUL} labels" if np.median(counts) < HANDFUL else ""
            return Advice(f"{told}{rare}.", Remedy(f"{ranges} {insist}", shell=ranges))
        case "none":
            return None


def check_class_texts(labels: NDArray[Any], parameter: str, function: str, given: object) -> None:
    """Refuse texts with nearly as many values as labels, as in a table, unless they were `given` as categories.

    >>> check_class_texts(np.array([f"node {k}" for k in range(300)]), "y", "fit", None)
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: The 'y' parameter of fit must be one class per node. Got 300 different texts for 300 labels ...
    """
    if labels.dtype.kind != "U" or _holds_categories(given):
        return
    n_values = len(np.unique(labels))
    if nearly_distinct(n_values, len(labels)):
        insist = f"If each text is a class, pass {_as_classes(given, parameter, one_each=True)}."
        remedy = Remedy(f"Pass the labels with the classes. {insist}", shell="Name the column with the classes.")
        got = f"{n_values:,} different texts for {len(labels):,} labels"
        reject(parameter, function, "one class per node", got, remedy=remedy)


def is_column(given: object) -> bool:
    """Whether labels come as the column of a table: a series of pandas or polars, or an array of Arrow.

    >>> import pandas as pd
    >>> is_column(pd.Series([1])), is_column(np.array([1])), is_column([1])
    (True, False, False)
    """
    return hasattr(given, "iloc") or _package(given) in ("polars", "pyarrow")


def _holds_categories(given: object) -> bool:
    """Whether the type of labels is one of categories, in pandas or polars."""
    return type(getattr(given, "dtype", None)).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def _as_classes(given: object, parameter: str, *, one_each: bool) -> str:
    """Return how labels are passed as classes: as text, or where each has a class of its own, as categories."""
    if _package(given) == "polars":
        return f"{parameter}.cast(pl.String)" + (".cast(pl.Categorical)" if one_each else "")
    if not one_each:
        return f"{parameter}.astype(str)"
    return f"{parameter}.astype('category')" if hasattr(given, "iloc") else f"pd.Categorical({parameter})"


def _package(given: object) -> str:
    return type(given).__module__.partition(".")[0]


def check_missing(missing: object, function: str) -> tuple[str, ...]:
    """Return the texts that stand for an unknown label, integers as texts; an empty cell always is one besides.

    >>> check_missing(["unknown", -9], "read_edges")
    ('unknown', '-9')
    """
    expected = "a sequence of texts or integers, such as ('?', 'unknown')"
    found = check_sequence(missing, "missing_labels", function, expected)
    for item in found:
        if not isinstance(item, str | numbers.Integral) or isinstance(item, bool):
            reject("missing_labels", function, expected, f"{describe(item)} among them")
    return tuple(str(item).strip() for item in found)


def alike_classes(names: Iterable[str]) -> list[str]:
    """Return the classes that differ from another only in case or blanks, those that are alike side by side.

    >>> alike_classes(["Red", "blue", "red ", "red"])
    ['Red', 'red ', 'red']
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[" ".join(name.casefold().split())].append(name)
    return [name for group in groups.values() if len(group) > 1 for name in group]
