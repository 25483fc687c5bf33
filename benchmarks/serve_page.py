"""Claim: what a person waits for on the explorer's page, in a headless Chromium on the machine of the server.

- the page of a node, from the address to its contributors, within a second;
- a slider, from its event to the first frame with other probabilities, within 100 ms on PubMed (99th percentile);
- the drawing of the node with most neighbours, from the link to the frame that has it, within 300 ms.

    PPROP_DATA=folder python benchmarks/serve_page.py pubmed --json results/serve_page_cpu.json

Times are those of the page's own clock. A slider's event that changes no digit of any probability is left out, and counted.
The last line is one JSON object; ``--json FILE`` writes it to a file too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from _measure import describe_machine, warn_if_busy
from serve import shares, train

GOALS = {"page_ms": 1000.0, "slider_ms": 100.0, "hub_ms": 300.0}
SLIDE = """value => new Promise(done => {
  const texts = () => [...document.querySelectorAll('[data-result]')].map(item => item.textContent).join('|');
  const before = texts(), slider = document.querySelector('#alpha'), begin = performance.now();
  const look = () => {
    if (texts() !== before) return requestAnimationFrame(() => done(performance.now() - begin));
    if (performance.now() - begin > 1500) return done(null);
    requestAnimationFrame(look);
  };
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  look();
})"""
WALK = """id => new Promise(done => {
  const begin = performance.now();
  const look = () => {
    const centre = document.querySelector('#drawing .node.centre');
    if (centre && centre.dataset.node === id && document.querySelectorAll('#drawing .node').length > 20)
      return requestAnimationFrame(() => done(performance.now() - begin));
    if (performance.now() - begin > 10000) return done(null);
    requestAnimationFrame(look);
  };
  location.hash = 'node=' + encodeURIComponent(id);
  look();
})"""


def main() -> None:
    """Measure; print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="pubmed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warn_if_busy()
    with tempfile.TemporaryDirectory() as folder:
        model = train(options.dataset, Path(folder, options.dataset))
        command = [sys.executable, "-m", "pprop", "serve", str(model), "--port", "0", "--json"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            found = measure(json.loads(server.stdout.readline())["address"].rstrip("/"))
        finally:
            server.terminate()
            server.wait()
    report = {"benchmark": "serve_page", "dataset": options.dataset, "machine": describe_machine("cpu"), "goals": GOALS}
    line = json.dumps(report | found)
    if options.json is not None:
        options.json.write_text(line + "\n", encoding="utf-8")
    print(line)


def measure(address: str) -> dict[str, Any]:
    """Return all figures of a page."""
    from playwright.sync_api import sync_playwright

    with urllib.request.urlopen(f"{address}/api/v1/predictions") as answer:
        ids = [json.loads(line)["id"] for line in answer]
    nodes: list[Any] = []
    for first in range(0, len(ids), 1000):
        body, head = json.dumps({"ids": ids[first : first + 1000]}).encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}/api/v1/predict", body, head)) as answer:
            nodes += json.load(answer)["predictions"]
    hub = str(max(nodes, key=lambda one: one["degree"])["id"])
    some = [str(one) for one in ids[:: len(ids) // 10]]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce").new_page()
        pages: list[float] = []
        for key in some:
            page.goto("about:blank")
            begin = time.perf_counter()
            page.goto(f"{address}/#node={key}")
            page.wait_for_selector("#contributors tbody tr")
            pages.append(1000 * (time.perf_counter() - begin))
        slides: list[float] = []
        same = 0
        for key in some[:5]:
            page.evaluate(WALK, key)
            for k in range(20):
                took = page.evaluate(SLIDE, str(round(0.05 + 0.045 * k, 2)))
                same += took is None
                slides += [] if took is None else [took]
        walks: list[float] = []
        for key in some[:5]:
            page.evaluate(WALK, key)
            walks.append(page.evaluate(WALK, hub))
        browser.close()
    return {
        "page_ms": shares(pages),
        "slider_ms": shares(slides),
        "slides_without_a_change": same,
        "hub_ms": shares(walks),
    }


if __name__ == "__main__":
    main()
