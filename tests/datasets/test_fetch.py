"""Downloads, from a server in this process: verified before they count, one sentence when they fail."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pprop._errors import DatasetError, MissingDependencyError
from pprop.datasets import dataset_info, load_dataset, registry
from pprop.datasets.files import bundled_folder, fetch, git_blob_id, locate
from pprop.datasets.registry import DatasetInfo

pytestmark = pytest.mark.slow


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name is the base class's)
        """Say nothing."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that takes the place of the authors' repository."""
    pytest.importorskip("pooch", reason="pooch is not installed")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(registry, "AUTHORS", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield folder
        server.shutdown()
        thread.join()


def serve_citeseer_as(name: str, folder: Path, *, sha256: bool) -> DatasetInfo:
    """Put the bundled file there under another name, with its digests in the description."""
    content = (bundled_folder() / "citeseer.npz").read_bytes()
    (folder / f"{name}.npz").write_bytes(content)
    return dataclasses.replace(
        dataset_info(name),
        git_blob=git_blob_id(folder / f"{name}.npz"),
        sha256=hashlib.sha256(content).hexdigest() if sha256 else None,
    )


def entries(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("sha256", [True, False])
def test_download_is_verified_and_cached(served: Path, only_bundled: Path, sha256: bool) -> None:
    info = serve_citeseer_as("pubmed", served, sha256=sha256)
    found = locate(info)
    assert (found.origin, found.path) == ("download", only_bundled / "pubmed.npz")
    assert found.path.read_bytes() == (served / "pubmed.npz").read_bytes()
    assert entries(only_bundled) == ["pubmed.npz"]
    (served / "pubmed.npz").unlink()
    assert locate(info).origin == "cache"


def test_damaged_cached_file_is_replaced_by_a_download(served: Path, only_bundled: Path) -> None:
    info = serve_citeseer_as("pubmed", served, sha256=False)
    only_bundled.mkdir(parents=True)
    (only_bundled / "pubmed.npz").write_bytes(b"half a file")
    assert locate(info).origin == "download"
    assert git_blob_id(only_bundled / "pubmed.npz") == info.git_blob


@pytest.mark.parametrize("name", ["cora_ml", "pubmed"])  # with a known sha256, and with git's id alone
def test_download_with_other_content_is_refused_and_leaves_nothing(served: Path, only_bundled: Path, name: str) -> None:
    (served / f"{name}.npz").write_bytes(b"something else")
    with pytest.raises(DatasetError, match=rf"'{name}' could not be downloaded: its content is not the authors'"):
        load_dataset(name)
    assert entries(only_bundled) == []


def test_failed_download_says_where_to_put_the_file(served: Path, only_bundled: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        load_dataset("ms_academic")
    info = dataset_info("ms_academic")
    assert str(caught.value) == (
        "The dataset 'ms_academic' could not be downloaded: the download failed. "
        f"Put the file from {info.url} at {only_bundled / 'ms_academic.npz'}, "
        "or into a folder of your own named by the environment variable PPROP_DATA."
    )
    assert entries(only_bundled) == []


def test_offline_machine_gets_the_same_sentence(only_bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch", reason="pooch is not installed")
    monkeypatch.setattr(registry, "AUTHORS", "http://127.0.0.1:9")  # the discard port: nobody listens
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(DatasetError, match=r"the download failed\. Put the file from .*cora_ml\.npz"):
        load_dataset("cora_ml")
    assert entries(only_bundled) == []


def test_without_pooch_the_sentence_names_it_and_the_way_round(
    only_bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r"'cora_ml' needs 'pooch'.*Put the file from"):
        fetch(dataset_info("cora_ml"))
    assert not only_bundled.exists()
    assert load_dataset("citeseer").n_nodes == 2110


def test_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch", reason="pooch is not installed")
    (tmp_path / "file").touch()
    monkeypatch.delenv("PPROP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match="'pubmed' could not be downloaded"):
        load_dataset("pubmed")
