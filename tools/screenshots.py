"""Take the pictures of the explorer: every view at three widths, light and dark.

Needs Chromium and a model that `pprop train` has saved; `docs/images` has the best of what this writes::

    pprop train citeseer --out model
    pprop train examples/recipes/edges.csv --nodes examples/recipes/nodes.csv --label-column cuisine --test 0.5 --out model
    python tools/screenshots.py model pictures --node green-fennel-broth --cut slow-salmon-soup green-lamb-mash
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZES = {"phone": (360, 780), "tablet": (834, 1112), "desktop": (1440, 1080)}
THEMES = ("light", "dark")


@contextmanager
def served(model: Path) -> Generator[str]:
    """The address of a server of a model."""
    command = [sys.executable, "-m", "pprop", "serve", str(model), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = next((re.search(r"http://\S+", line) for line in process.stdout if "http://" in line), None)
            if found is None:
                raise SystemExit("The server did not start.")
            yield found.group()
        finally:
            process.terminate()


def views(node: str, cut: tuple[str, str] | None) -> dict[str, str]:
    """Fragments of the addresses to look at, by name; `cut` is the edge that the what-if cuts."""
    edited = f"#node={node}" if cut is None else f"#node={cut[0]}&edit=cut~{cut[0]}~{cut[1]}"
    return {"node": f"#node={node}", "what-if": edited, "model": "#view=model"}


def neighbour(page: Any, node: str) -> str | None:
    """A node that is connected with another, as the drawing shows it."""
    edges: list[str] = page.eval_on_selector_all("#drawing .edge", "all => all.map(one => one.dataset.edge)")
    return next((end for edge in edges for end in edge.split(" ") if node in edge.split(" ") and end != node), None)


def settled(page: Any, address: str) -> None:
    """Open a view and wait until nothing moves."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#confusion" if "view=model" in address else "#contributors tbody tr")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(700)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--node", help="the node to show; by default the one that the server suggests")
    parser.add_argument("--cut", nargs=2, metavar="NODE", help="the edge to cut; by default the first one of the node")
    parser.add_argument("--whole", action="store_true", help="the whole page, not only what fits the window")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("No Chromium is installed.")
    given.folder.mkdir(parents=True, exist_ok=True)
    with served(given.model) as address, sync_playwright() as driver:
        window: Any = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--hide-scrollbars"])
        for size, (width, height) in SIZES.items():
            for theme in THEMES:
                phone: dict[str, Any] = (
                    {"is_mobile": True, "has_touch": True, "device_scale_factor": 2} if size == "phone" else {}
                )
                view = {"width": width, "height": height}
                context = window.new_context(viewport=view, color_scheme=theme, **phone)
                page = context.new_page()
                settled(page, address if given.node is None else f"{address}#node={given.node}")
                node = page.get_attribute("#drawing .node.centre", "data-node")
                other = neighbour(page, node)
                cut = tuple(given.cut) if given.cut else None if other is None else (node, other)
                for name, fragment in views(node, cut).items():
                    settled(page, address + fragment)
                    file = given.folder / f"{name}-{size}-{theme}.png"
                    page.screenshot(path=file, full_page=given.whole)
                    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
                context.close()
        window.close()


if __name__ == "__main__":
    main()
