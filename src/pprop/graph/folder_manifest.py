"""What is in the folder of a graph: a manifest, written last, and npy files.

``manifest.json`` has the format's name and version, the sizes, the type, shape and digest of every array, and
``complete``. Each array is an npy file of its name.

=================================================  =========================================================
``indptr`` (n + 1,), ``indices`` (entries,)        int64 and int32; entry (i, j) is what i receives from j,
                                                   columns sorted and distinct within a row
``weights`` (entries,)                             float32 where that loses nothing, else float64; not there
                                                   where all are one
``features`` (n, ...)                              float16, float32, float64, int8 or uint8
``features.indptr``, ``.indices``, ``.data``       sparse features: int64, int32, float32 or float64
``labels`` (n,)                                    int64, -1 where unknown
``ids`` (n,), or ``ids.offsets``, ``ids.bytes``    int64 (or uint64), or text in UTF-8
``feature_names.offsets``, ``.bytes``              text
=================================================  =========================================================
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from pprop._errors import FormatError
from pprop._validate import reject
from pprop.graph.attributes import Recommended, count_loops
from pprop.graph.features.recipe import Recipe
from pprop.graph.features.scaling import STORED
from pprop.graph.files import path_of, read_json, replaced_file
from pprop.graph.folder_arrays import HEADER, map_array
from pprop.settings import NORMALIZATION

FORMAT, VERSION, MANIFEST = "pprop graph folder", 1, "manifest.json"
FUNCTION = "GraphFolder.open"
TYPES = {  # of every array that a folder may have
    "indptr": ("<i8",),
    "indices": ("<i4",),
    "weights": ("<f4", "<f8"),
    "features": tuple(kind.newbyteorder("<").str for kind in STORED),
    "features.indptr": ("<i8",),
    "features.indices": ("<i4",),
    "features.data": ("<f4", "<f8"),
    "labels": ("<i8",),
    "ids": ("<i8", "<u8"),
    "ids.offsets": ("<i8",),
    "ids.bytes": ("|u1",),
    "feature_names.offsets": ("<i8",),
    "feature_names.bytes": ("|u1",),
}
FILES = frozenset({MANIFEST, *(f"{name}.npy" for name in TYPES)})
KEYS: dict[str, Any] = {
    "nodes": int,
    "entries": int,
    "edges": int,
    "directed": bool,
    "feature_columns": int | None,
    "class_names": (list, type(None)),
    "name": str | None,
    "recommended": (dict, type(None)),
    "recipe": (dict, type(None)),
    "arrays": (dict,),
    "fingerprint": str,
}


def refuse(folder: Path, got: str, remedy: str = "Build it again.") -> NoReturn:
    """Raise the house sentence about a folder.

    >>> refuse(Path("g"), "cut short", "")
    Traceback (most recent call last):
        ...
    pprop._errors.FormatError: The 'path' parameter of GraphFolder.open must be a sound graph folder. Got 'g' cut short instead.
    """
    reject("path", FUNCTION, "a sound graph folder", f"{str(folder)!r} {got}", remedy=remedy, error=FormatError)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, of which the arrays' files are not looked at yet, trusting nothing in it."""
    file = folder / MANIFEST
    if not os.path.isdir(folder):
        reject("path", FUNCTION, "a folder", repr(str(folder)))
    if not file.is_file():
        if any((folder / f"{name}.npy").exists() for name in TYPES):
            refuse(folder, f"without {MANIFEST!r}, half built,")
        refuse(folder, f"without {MANIFEST!r}", "pprop build makes one, and so does pprop.write_folder.")
    try:
        found = read_json(file)
    except (OSError, ValueError):
        refuse(folder, f"with a damaged {MANIFEST!r}")
    if not isinstance(found, dict) or cast("dict[str, object]", found).get("format") != FORMAT:
        refuse(folder, f"with a {MANIFEST!r} of something else", "")
    manifest = cast("dict[str, Any]", found)
    if manifest.get("version") != VERSION:
        version = str(manifest.get("version"))[:20]
        refuse(folder, f"of version {version}, and this pprop reads version {VERSION},")
    if manifest.get("complete") is not True:
        refuse(folder, "half built,")
    wrong = [key for key, kind in KEYS.items() if not isinstance(manifest.get(key, ...), kind)]
    names: list[object] = manifest.get("class_names") or []
    if wrong or not all(isinstance(name, str) for name in names):
        refuse(folder, f"with a damaged {MANIFEST!r} ({(*wrong, 'class_names')[0]!r})")
    _check_shapes(folder, manifest)
    return manifest


def _check_shapes(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a manifest whose arrays do not fit together."""
    shapes: dict[str, list[int]] = {}
    for name, about in manifest["arrays"].items():
        shape: object = cast("dict[str, object]", about).get("shape") if isinstance(about, dict) else None
        sizes = cast("list[object]", shape) if isinstance(shape, list) else [-1]
        if (
            name not in TYPES
            or about.get("dtype") not in TYPES[name]
            or not all(type(n) is int and n >= 0 for n in sizes)
        ):
            refuse(folder, f"with a damaged {MANIFEST!r} ({name!r})")
        shapes[name] = cast("list[int]", sizes)
    n, entries, width = manifest["nodes"], manifest["entries"], manifest["feature_columns"]
    expected: dict[str, Any] = {
        "indptr": [n + 1],
        "indices": [entries],
        "weights": [entries],
        "labels": [n],
        "ids": [n],
    }
    expected |= {"ids.offsets": [n + 1], "features.indptr": [n + 1], "feature_names.offsets": [(width or 0) + 1]}
    for name, shape in expected.items():
        if shapes.get(name, None if name in ("indptr", "indices") else shape) != shape:
            refuse(folder, f"with {name!r} of shape {shapes.get(name)} where {shape} belongs")
    pairs = (("ids.offsets", "ids.bytes"), ("feature_names.offsets", "feature_names.bytes"))
    pairs = (*pairs, ("features.indptr", "features.indices"), ("features.indices", "features.data"))
    broken = [one for one, other in pairs if (one in shapes) != (other in shapes)]
    if shapes.get("features.indices") != shapes.get("features.data"):
        broken.append("features.data")
    dense = shapes.get("features")
    if dense is not None and (len(dense) < 2 or dense[:2] != [n, width]):
        broken.append("features")
    if (width is None or width < 0) and ("features.data" in shapes or "feature_names.offsets" in shapes):
        broken.append("feature_columns")
    if not 0 < n < 2**31:
        broken.append("nodes")
    if broken:
        refuse(folder, f"with {broken[0]!r} that does not fit the rest")


def open_array(folder: Path, name: str, about: Mapping[str, Any]) -> NDArray[Any]:
    """Map an array, once its file is known to be as long, and of the type and shape, that the manifest says."""
    file = folder / f"{name}.npy"
    shape = tuple(about["shape"])
    expected = HEADER + math.prod(shape) * np.dtype(about["dtype"]).itemsize
    try:
        size = file.stat().st_size
        if size != expected:
            what = "cut short to" if size < expected else "of"
            refuse(folder, f"with {file.name!r} {what} {size:,} bytes where {expected:,} belong")
        with file.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            header = np.lib.format.read_array_header_1_0(stream) if version == (1, 0) else None
            start = stream.tell()
        if header is None or start != HEADER or header != (shape, False, np.dtype(about["dtype"])):
            refuse(folder, f"with {file.name!r} of another type or shape than was written")
        return map_array(file, about["dtype"], shape)
    except FileNotFoundError:
        refuse(folder, f"without {file.name!r}")
    except FormatError:
        raise
    except (OSError, ValueError) as error:
        refuse(folder, f"with {file.name!r} that cannot be read ({error})", "")


def file_state(file: Path) -> tuple[int, ...]:
    """Return what changes when a file is written to or is another: its number, size and time of change."""
    about = file.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


def check_target(path: object, parameter: str, function: str, *, replace: bool) -> Path:
    """Return where a graph folder is to be made; what is there must be one, and `replace` true."""
    target = path_of(path, parameter, function)
    target = target if target.name else target.absolute()
    if not os.path.isdir(target.parent):
        reject(parameter, function, "a folder in an existing folder", repr(str(path)))
    if not os.access(target.parent, os.W_OK | os.X_OK):
        got = f"{str(path)!r}, where this user may not write,"
        reject(parameter, function, "a path that can be written", got)
    if target.exists() or target.is_symlink():
        if not target.is_dir() or target.is_symlink() or {file.name for file in target.iterdir()} - FILES:
            reject(parameter, function, "a new folder, or one with a graph", f"{str(path)!r} with other content")
        if not replace and any(target.iterdir()):
            remedy = "Pass replace=True to put another in its place."
            reject(parameter, function, "a new folder", f"{str(path)!r}, which is already there,", remedy=remedy)
    return target


def write_manifest(
    folder: Path,
    arrays: Mapping[str, Mapping[str, Any]],
    *,
    directed: bool,
    edges: int | None = None,
    feature_columns: int | None = None,
    class_names: tuple[str, ...] | None = None,
    name: str | None = None,
    recommended: Recommended | None = None,
    recipe: Recipe | None = None,
) -> None:
    """Complete a folder whose arrays are written; `arrays` has what their writers' ``close`` returned, by name.

    `edges` is counted where it is None.
    """
    if edges is None:
        indptr, indices = (
            map_array(folder / f"{one}.npy", arrays[one]["dtype"], arrays[one]["shape"])
            for one in ("indptr", "indices")
        )
        loops = 0 if directed else count_loops(indptr, indices)
        edges = len(indices) if directed else (len(indices) + loops) // 2
    digest = hashlib.sha256(f"{FORMAT} {VERSION} {directed} {feature_columns}".encode())
    for one in sorted(name for name in arrays if not name.startswith("feature_names")):
        digest.update(f"{one} {arrays[one]['dtype']} {list(arrays[one]['shape'])} {arrays[one]['digest']}".encode())
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": arrays["indptr"]["shape"][0] - 1,
        "entries": arrays["indices"]["shape"][0],
        "edges": edges,
        "directed": directed,
        "feature_columns": feature_columns,
        "class_names": None if class_names is None else list(class_names),
        "name": name,
        "recommended": None if recommended is None else vars(recommended),
        "recipe": None if recipe is None else recipe.to_json(),
        "arrays": {one: dict(arrays[one]) for one in arrays},
        "fingerprint": digest.hexdigest()[:32],
        "complete": True,
    }
    with replaced_file(folder / MANIFEST) as stream:
        stream.write(json.dumps(manifest, indent=1).encode())


def manifest_fields(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recipe and the recommendation of a manifest."""
    advice, recipe = manifest["recommended"], manifest["recipe"]
    recommended = None
    if advice is not None:  # a folder of an earlier version has no normalisation: it was the paper's
        matrix = advice.get("normalization", NORMALIZATION.default)
        recommended = Recommended(float(advice["alpha"]), int(advice["known"]), matrix)
    return {
        "recommended": recommended,
        "recipe": None if recipe is None else Recipe.from_json(recipe),
    }
