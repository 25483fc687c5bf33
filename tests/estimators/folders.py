"""Changes to the folder of a saved model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def put_weights(folder: Path, content: bytes) -> None:
    """Change the weights, and the manifest so that it agrees."""
    (folder / "weights.safetensors").write_bytes(content)
    edit(folder, lambda manifest: manifest["weights"].update(sha256=hashlib.sha256(content).hexdigest()))


def put_features(folder: Path, content: bytes) -> None:
    """Change the description of the features, and the manifest so that it agrees."""
    (folder / "features.json").write_bytes(content)
    edit(folder, lambda manifest: manifest["features"].update(sha256=hashlib.sha256(content).hexdigest()))


def put_tensors(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the arrays among the weights, and the manifest so that it agrees."""
    tensors = read_tensors((folder / "weights.safetensors").read_bytes())
    change(tensors)
    put_weights(folder, tensor_bytes(tensors))
