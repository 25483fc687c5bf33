"""The explorer in a real browser, used as a person would, and compared with the library."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from tests.serve import browser as tools

import pprop

pytestmark = pytest.mark.slow

NODE = "n62"
MINUS = "\N{MINUS SIGN}"
NODE_LINKS = "#drawing .node"


class Explorer(NamedTuple):
    """A browser, the address of the server, and what the page must show."""

    browser: Any
    address: str
    truth: tools.Truth
    served: Any


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    tools.need_browser()
    pytest.importorskip("fastapi", reason="the server needs fastapi")
    graph = tools.orchard()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tools.trained(graph)
    served = tools.Served(
        model.fitted_, "orchard", names=tools.names(), texts=[f"All about {name}" for name in tools.names()]
    )
    with tools.serving(served) as address, tools.chromium() as browser:
        yield Explorer(browser, address, tools.Truth(model, graph), served)


@pytest.fixture
def page(explorer: Explorer) -> Iterator[Any]:
    """A page of its own, wide and light; anything in the console that is an error fails the test."""
    context = explorer.browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    made = context.new_page()
    made.set_default_timeout(30000)
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda error: said.append(str(error)))
    made.said = said
    yield made
    context.close()
    assert said == []


def visit(page: Any, explorer: Explorer, fragment: str = f"#node={NODE}") -> None:
    """Open the page and wait until a view stands there."""
    page.goto(explorer.address + fragment)
    if "view=model" in fragment:
        page.wait_for_selector("#confusion")
    elif "view=nodes" in fragment:
        page.wait_for_selector("#list-total")
    else:
        page.wait_for_selector("#view-node.ready")
        page.wait_for_selector("#contributors tbody tr")
        page.wait_for_selector(NODE_LINKS)


def eventually(page: Any, expression: str, argument: Any = None) -> None:
    page.wait_for_function(expression, arg=argument)


def await_address(page: Any, part: str, *, there: bool = True) -> None:
    """Wait until the address, which follows the page after a moment, has a part or lacks it."""
    eventually(page, f"part => location.hash.includes(part) === {str(there).lower()}", part)


def shown(page: Any, kind: str) -> list[str]:
    """The percentages of the pairs of bars: `network` or `result`."""
    return page.eval_on_selector_all(f"[data-{kind}]", "items => items.map(item => item.textContent)")


def percents(values: Any) -> list[str]:
    return [f"{100 * value:.1f}%" for value in values]


def await_bars(page: Any, values: Any) -> None:
    """Wait until the bars say what the library says; fails by showing both."""
    wanted = percents(values)
    script = (
        "wanted => [...document.querySelectorAll('[data-result]')].every((item, i) => item.textContent === wanted[i])"
    )
    try:
        eventually(page, script, wanted)
    except Exception:
        assert shown(page, "result") == wanted
        raise


def number(text: str) -> float:
    return float(text.replace(MINUS, "-").replace("+", ""))


def centre(page: Any) -> str:
    return page.get_attribute(f"{NODE_LINKS}.centre", "data-node")


def press_slider(page: Any, name: str, key: str, times: int) -> None:
    page.focus(f"#{name}")
    for _ in range(times):
        page.keyboard.press(key)


def test_the_page_shows_what_the_library_predicts(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    probabilities = truth.model.predict_proba([at])[0]
    await_bars(page, probabilities)
    assert shown(page, "network") == percents(truth.network()[at])
    best = truth.classes[int(probabilities.argmax())]
    assert page.inner_text("#verdict").split("\n") == [best, percents([probabilities.max()])[0]]
    assert page.inner_text("#node-title") == tools.names()[at]
    degree = int((truth.graph.adjacency[[at]] > 0).sum())
    assert f"Node {NODE} · {degree} neighbours" in page.inner_text("#node-sub")
    page.click("#view-node details summary")
    assert page.inner_text(".text-body") == f"All about {tools.names()[at]}"
    assert page.title().startswith(tools.names()[at])


def test_contributions_add_up_to_the_logit_on_the_screen(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    explained = pprop.explain(truth.model, at, tools.SIZE)
    code = int(truth.model.logits_[at].argmax())
    table = page.eval_on_selector_all(
        "#contributors tbody tr",
        "rows => rows.map(row => [row.dataset.contributor, row.cells[1].textContent, row.cells[4].textContent])",
    )
    rest, logit = number(page.inner_text("#rest")), number(page.inner_text("#logit"))
    assert len(table) == 12
    assert round(sum(number(row[2]) for row in table) + rest, 4) == logit
    assert logit == pytest.approx(float(truth.model.logits_[at, code]), abs=1e-4)
    terms = dict(zip(explained.names, explained.contributions[:, code], strict=True))
    weights = dict(zip(explained.names, explained.weights, strict=True))
    for name, weight, contribution in table:
        assert number(contribution) == pytest.approx(terms[name], abs=1.1e-4)
        assert number(weight) == pytest.approx(weights[name], abs=6e-4)
    assert [row[0] for row in table] == sorted(terms, key=lambda name: -abs(terms[name]))[:12]


def test_another_class_can_be_explained(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    for code, name in enumerate(truth.classes):
        page.click(f"#bars [data-class='{code}'] button")
        eventually(
            page, "name => document.querySelector('#contributors .total th').textContent === `Logit of ${name}`", name
        )
        assert number(page.inner_text("#logit")) == pytest.approx(float(truth.model.logits_[at, code]), abs=1e-4)
    await_address(page, f"class={quote(truth.classes[-1], safe='').replace('%20', '+')}")


def test_a_search_by_keyboard_leads_to_a_node(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    page.keyboard.press("/")
    page.keyboard.type("number 31")
    page.wait_for_selector("#search-list [role=option]")
    assert page.get_attribute("#search-input", "aria-expanded") == "true"
    assert page.get_attribute("#search-input", "aria-activedescendant") == "option-0"
    page.keyboard.press("Enter")
    eventually(page, "() => document.querySelector('#node-title').textContent === 'Fruit number 31'")
    await_bars(page, explorer.truth.model.predict_proba([31])[0])
    assert "node=n31" in page.url
    page.keyboard.press("/")
    page.keyboard.type("n1")
    page.wait_for_selector("#option-1")
    page.keyboard.press("ArrowDown")
    second = page.inner_text("#option-1 .grow")
    page.keyboard.press("Enter")
    eventually(page, "text => text.startsWith(document.querySelector('#node-title').textContent)", second)
    page.keyboard.press("/")
    page.keyboard.type("plums")
    page.wait_for_selector("#search-list [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#node-list")
    predicted = np.array(explorer.truth.model.predict(range(tools.SIZE)))
    assert page.inner_text("#list-title") == "Nodes predicted plums & figs"
    assert page.locator("#node-list tbody tr").count() == int((predicted == "plums & figs").sum())


def test_a_click_walks_on_and_the_way_back_returns(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    near = page.locator(f"{NODE_LINKS}:not(.centre)").nth(2)
    first = near.get_attribute("data-node")
    near.locator(".body").click()
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", first)
    await_bars(page, explorer.truth.model.predict_proba([explorer.truth.position(first)])[0])
    other = page.locator("#contributors tbody tr:not(:has-text('itself')) a").first
    second = other.evaluate("link => link.closest('tr').dataset.contributor")
    other.click()
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", second)
    assert page.locator("#crumbs li").all_inner_texts() == [NODE, first, second]
    page.click("#back")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", first)
    assert page.locator("#crumbs li").all_inner_texts() == [NODE, first]
    page.go_back()
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", NODE)
    page.go_forward()
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", first)
    page.click("#crumbs a")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", NODE)


def test_the_drawing_shows_classes_influence_training_and_weights(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    assert page.locator(NODE_LINKS).count() == 40
    weights = tools.spread(truth.graph, tools.ALPHA, tools.STEPS)[at]
    drawn = page.eval_on_selector_all(NODE_LINKS, "all => all.map(one => one.dataset.node)")
    assert NODE in drawn
    order = [str(truth.graph.ids[node]) for node in np.argsort(-weights, kind="stable")[:40]]  # pyright: ignore[reportOptionalSubscript]
    assert len(set(order) - {NODE} - set(drawn)) <= 1  # the centre has a place in any case
    predicted = truth.model.predict(range(tools.SIZE))
    for name in drawn:
        kinds = page.get_attribute(f'{NODE_LINKS}[data-node="{css(name)}"]', "class").split()
        node = truth.position(name)
        assert f"k{truth.classes.index(str(predicted[node]))}" in kinds
        assert [kind for kind in kinds if kind in ROLES] == [role_of(truth, node)]
        label = truth.graph.labels[node]  # pyright: ignore[reportOptionalSubscript]
        assert ("wrong" in kinds) == (label >= 0 and tools.CLASSES[label] != predicted[node])
    roles = [role_of(truth, truth.position(name)) for name in drawn]
    counted = {"training": roles.count("training"), "validation": roles.count("validation")}
    counted["others"] = len(roles) - sum(counted.values())
    legend = page.eval_on_selector_all(
        ".legend [data-role]", "all => Object.fromEntries(all.map(one => [one.dataset.role, one.textContent]))"
    )
    assert legend == {role: f"({number})" for role, number in counted.items()}
    assert min(counted.values()) > 0
    rings = {
        role: page.eval_on_selector(f"#drawing .node.{role} .ring", "one => getComputedStyle(one).strokeDasharray")
        for role in ("training", "validation")
    }
    assert rings["training"] == "none" != rings["validation"]
    edges = page.eval_on_selector_all(
        "#drawing .edge",
        "all => all.map(one => [one.dataset.edge, Number(one.querySelector('.line').getAttribute('stroke-width'))])",
    )
    sizes: dict[float, set[float]] = {}
    for ends, width in edges:
        source, target = ends.split(" ")
        weight = float(truth.graph.adjacency[truth.position(source), truth.position(target)])
        sizes.setdefault(weight, set()).add(width)
    assert all(len(widths) == 1 for widths in sizes.values())
    widths = [sizes[weight].pop() for weight in sorted(sizes)]
    assert widths == sorted(widths)
    assert len(set(widths)) == len(sizes) > 1


ROLES = ("training", "validation", "test", "unlabelled")


def role_of(truth: tools.Truth, node: int) -> str:
    assert truth.graph.labels is not None
    if node in truth.model.train_nodes_:
        return "training"
    if node in truth.model.stopping_nodes_:
        return "validation"
    return "unlabelled" if truth.graph.labels[node] < 0 else "test"


def css(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def test_sliders_recompute_and_say_what_was_trained(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    assert "As the network was trained: alpha 0.1 and 10 steps" in page.inner_text("#trained-note")
    press_slider(page, "alpha", "ArrowRight", 25)
    await_bars(page, tools.softmax(truth.logits(0.35))[at])
    assert page.inner_text("#alpha-value") == "0.35"
    assert "was trained at alpha 0.1 and 10 steps" in page.inner_text("#trained-note")
    press_slider(page, "steps", "ArrowLeft", 8)
    await_bars(page, tools.softmax(truth.logits(0.35, 2))[at])
    assert page.inner_text("#steps-value") == "2"
    code = int(truth.logits(0.35, 2)[at].argmax())
    eventually(
        page,
        "wanted => Math.abs(Number(document.querySelector('#logit').title) - wanted) < 1e-4",
        float(truth.logits(0.35, 2)[at, code]),
    )
    await_address(page, "alpha=0.35")
    await_address(page, "steps=2")
    press_slider(page, "steps", "Home", 1)
    await_bars(page, tools.softmax(truth.logits(0.35, 1))[at])
    page.click("#reset")
    await_bars(page, truth.model.predict_proba([at])[0])
    await_address(page, "alpha", there=False)
    assert page.is_disabled("#reset")


def test_a_changed_prediction_is_announced(page: Any, explorer: Explorer) -> None:
    truth = explorer.truth
    before, after = truth.logits().argmax(axis=1), truth.logits(1.0).argmax(axis=1)
    at = int(np.flatnonzero(before != after)[0])
    node = str(truth.graph.ids[at])  # pyright: ignore[reportOptionalSubscript]
    visit(page, explorer, f"#node={quote(node, safe='')}")
    press_slider(page, "alpha", "End", 1)
    said = f"The prediction is now {truth.classes[after[at]]}, "
    eventually(page, "said => document.querySelector('#live').textContent.startsWith(said)", said)
    assert page.get_attribute("#live", "aria-live") == "polite"


def test_edges_are_cut_and_added_and_the_edits_undone(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    truth = explorer.truth
    at = truth.position(NODE)
    plain = truth.model.predict_proba([at])[0]
    page.focus(f"{NODE_LINKS}.centre")
    hit = page.locator(f"#drawing .edge[data-edge^='{NODE} '], #drawing .edge[data-edge$=' {NODE}']").first
    ends = tuple(hit.get_attribute("data-edge").split(" "))
    hit.locator(".hit").dispatch_event("click")
    assert page.is_visible("#edge-bar")
    asked: list[Any] = []
    page.on("request", lambda one: asked.append(one) if one.url.endswith("/what-if") else None)
    page.click("#edge-cut")
    cut = truth.edited({ends: 0.0})[at]
    await_bars(page, cut)
    page.wait_for_selector("#edited")
    assert len(asked) == 2  # whether the edit is possible; then prediction and contributors, from one answer
    assert page.locator("#edits li").count() == 1
    assert page.locator("#drawing .edge.cut").count() == 1
    assert percents([plain.max(), cut[int(cut.argmax())]]) == page.locator("#what-if-result .number").all_inner_texts()
    stranger = next(f"n{node}" for node in range(80, 90) if truth.graph.adjacency[at, node] == 0 and node != at)
    page.fill("#edge-source", NODE)
    page.fill("#edge-target", stranger)
    page.click("#add-edge")
    both = truth.edited({ends: 0.0, (NODE, stranger): 1.0})[at]
    await_bars(page, both)
    page.wait_for_selector(f'{NODE_LINKS}[data-node="{stranger}"]')
    assert page.locator("#drawing .edge.added").count() == 1
    page.click("#undo")
    await_bars(page, cut)
    page.click("#undo")
    await_bars(page, plain)
    assert page.is_disabled("#undo")
    page.locator("h1").first.click()
    page.keyboard.press("Control+Shift+Z")
    await_bars(page, cut)
    page.click("#redo")
    await_bars(page, both)
    page.click("#edits li:first-child button")
    await_bars(page, truth.edited({(NODE, stranger): 1.0})[at])
    page.click("#clear-edits")
    await_bars(page, plain)
    await_address(page, "edit", there=False)


class Table(NamedTuple):
    """What the table of contributors shows: ids, weights as text, contributions in all digits, rest and logit."""

    ids: list[str]
    weights: list[str]
    contributions: list[float]
    rest: float
    logit: float


def contributors(page: Any) -> Table:
    rows = page.eval_on_selector_all(
        "#contributors tbody tr",
        "rows => rows.map(row => [row.dataset.contributor, row.cells[1].textContent, Number(row.cells[4].title)])",
    )
    ids, weights, terms = (list(column) for column in zip(*rows, strict=True))
    return Table(ids, weights, terms, *(float(page.get_attribute(one, "title")) for one in ("#rest", "#logit")))


def test_contributors_are_those_of_the_edited_graph(page: Any, explorer: Explorer) -> None:
    truth = explorer.truth
    at = truth.position(NODE)
    other = str(truth.graph.ids[truth.graph.indices[truth.graph.indptr[at]]])  # pyright: ignore[reportOptionalSubscript]
    stranger = next(f"n{node}" for node in range(80, 90) if truth.graph.adjacency[at, node] == 0 and node != at)

    def check(remove: list[str], add: list[str], name: str | None = None) -> Table:
        """Compare the table with the answer of the server and with dense matrices."""
        changes = {(NODE, end): 0.0 for end in remove} | {(NODE, end): 1.0 for end in add}
        row = truth.edited_spread(changes)[at]
        logits = row @ truth.alone
        code = int(logits.argmax()) if name is None else truth.classes.index(name)
        wanted = "wanted => Math.abs(Number(document.querySelector('#logit').title) - wanted) < 1e-4"
        eventually(page, wanted, float(logits[code]))
        shown = contributors(page)
        body = {
            "id": NODE,
            "k": 12,
            "remove": [{"source": NODE, "target": end} for end in remove],
            "add": [{"source": NODE, "target": end} for end in add],
        } | ({} if name is None else {"class": name})
        answer = page.request.post(f"{explorer.address}api/v1/what-if", data=body).json()["explanation"]
        assert answer["class"] == truth.classes[code]
        assert shown.ids == [one["id"] for one in answer["contributors"]]
        assert shown.contributions == [one["contribution"] for one in answer["contributors"]]
        assert shown.weights == [f"{one['weight']:.3f}" for one in answer["contributors"]]
        assert (shown.rest, shown.logit) == (answer["rest"]["contribution"], answer["logit"])
        assert sum(shown.contributions) + shown.rest == pytest.approx(shown.logit, abs=1e-9)
        terms = [float(row[node] * truth.alone[node, code]) for node in map(truth.position, shown.ids)]
        assert shown.contributions == pytest.approx(terms, abs=1e-4)
        assert page.is_visible("#edited") == bool(changes)
        caption = "said => document.querySelector('#caption').textContent.includes('without your edits') === said"
        eventually(page, caption, bool(changes))
        return shown

    def edit(button: str, end: str) -> None:
        page.fill("#edge-source", NODE)
        page.fill("#edge-target", end)
        page.click(button)

    visit(page, explorer)
    plain = check([], [])
    edit("#cut-edge", other)
    cut = check([other], [])
    assert cut != plain
    edit("#add-edge", stranger)
    both = check([other], [stranger])
    assert both != cut
    name = next(one for one in truth.classes if one != page.input_value("#explained-class"))
    page.select_option("#explained-class", name)
    check([other], [stranger], name)
    page.click("#undo")
    check([other], [], name)
    page.click("#undo")
    check([], [], name)
    page.click("#redo")
    check([other], [], name)


def test_an_impossible_edit_is_refused_in_words(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    page.click("#cut-edge")
    assert page.inner_text("#edit-error") == "Name both ends of the edge."
    page.fill("#edge-target", "nobody")
    page.click("#cut-edge")
    eventually(page, "() => document.querySelector('#edit-error').textContent.includes('nobody')")
    assert page.locator("#edits li").count() == 0
    forget_answers(page, "404")


def forget_answers(page: Any, status: str) -> None:
    """A browser writes refused requests into the console; those that the test provoked are no fault."""
    page.said[:] = [text for text in page.said if f"status of {status}" not in text]


def test_a_link_restores_the_view(page: Any, explorer: Explorer) -> None:
    truth = explorer.truth
    at = truth.position(NODE)
    other = str(truth.graph.ids[truth.graph.indices[truth.graph.indptr[at]]])  # pyright: ignore[reportOptionalSubscript]
    fragment = f"#node={NODE}&alpha=0.3&class=apples&size=15&edit={quote(f'cut~{NODE}~{other}', safe='')}"
    visit(page, explorer, fragment)
    await_bars(page, truth.edited({(NODE, other): 0.0}, alpha=0.3)[at])
    assert page.inner_text("#alpha-value") == "0.3"
    assert page.input_value("#explained-class") == "apples"
    assert page.input_value("#size") == "15"
    assert page.locator("#edits li").all_inner_texts()[0].startswith(f"Cut {NODE} – {other}")
    address = page.url
    page.reload()
    await_bars(page, truth.edited({(NODE, other): 0.0}, alpha=0.3)[at])
    assert page.url == address
    page.click("#tab-model")
    page.wait_for_selector("#confusion")
    page.go_back()
    await_bars(page, truth.edited({(NODE, other): 0.0}, alpha=0.3)[at])


def test_cells_of_the_model_lead_to_their_nodes(page: Any, explorer: Explorer) -> None:
    visit(page, explorer, "#view=model")
    truth = explorer.truth
    known, labels = set(truth.model.known_nodes_.tolist()), truth.graph.labels
    assert labels is not None
    tested = [node for node in range(tools.SIZE) if labels[node] >= 0 and node not in known]
    predicted = [str(name) for name in truth.model.predict(range(tools.SIZE))]
    right = np.mean([predicted[node] == tools.CLASSES[labels[node]] for node in tested])
    assert page.inner_text("#accuracy") == percents([right])[0]
    counts = page.eval_on_selector_all(
        ".facts [data-role]", "all => Object.fromEntries(all.map(one => [one.dataset.role, Number(one.textContent)]))"
    )
    assert counts == {role: sum(role_of(truth, node) == role for node in range(tools.SIZE)) for role in ROLES}
    cells = page.eval_on_selector_all(
        "#confusion [data-cell]",
        "all => Object.fromEntries(all.map(one => [one.dataset.cell, Number(one.textContent)]))",
    )
    pairs = [(tools.CLASSES[labels[node]], predicted[node]) for node in tested]
    counted = {f"{truth.classes.index(a)} {truth.classes.index(b)}": pairs.count((a, b)) for a, b in pairs}
    assert cells == counted
    wrong = next(key for key in counted if key.split()[0] != key.split()[1])
    page.click(f"#confusion [data-cell='{wrong}']")
    page.wait_for_selector("#node-list")
    assert page.locator("#node-list tbody tr").count() == counted[wrong]
    listed = page.eval_on_selector_all("#node-list tbody tr", "all => all.map(one => one.dataset.node)")
    for name in listed:
        node = truth.position(name)
        assert (truth.classes.index(tools.CLASSES[labels[node]]), truth.classes.index(predicted[node])) == tuple(
            map(int, wrong.split())
        )
    page.click("#node-list a")
    page.wait_for_selector("#view-node.ready")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", listed[0])
    page.click("#tab-model")
    unsure = page.eval_on_selector_all("#uncertain tbody tr", "all => all.map(one => one.cells[2].textContent)")
    assert unsure == percents(np.sort(truth.model.predict_proba(range(tools.SIZE)).max(axis=1))[:20])
    page.click("#by-distance [data-distance='1']")
    page.wait_for_selector("#node-list")
    assert "1 step from a training node" in page.inner_text("#list-title")


def test_bins_of_confidence_lead_to_their_nodes(page: Any, explorer: Explorer) -> None:
    visit(page, explorer, "#view=model")
    confidence = explorer.truth.model.predict_proba(range(tools.SIZE)).max(axis=1)
    bins = page.eval_on_selector_all(
        "#confidence tbody tr",
        """all => all.map(one => [one.querySelector('a').dataset.confidence,
            one.querySelector('a').getAttribute('aria-label'), Number(one.cells[1].textContent)])""",
    )
    assert sum(nodes for _, _, nodes in bins) == tools.SIZE
    assert len(bins) > 2
    for number, (least, said, nodes) in enumerate(bins):
        tenth = round(10 * float(least))
        inside = (confidence >= tenth / 10) & ((confidence < (tenth + 1) / 10) | (tenth == 9))
        assert nodes == inside.sum()
        name = f"{10 * tenth}% to {10 * tenth + 10}% sure"
        assert said == f"{name}: {nodes} node{'s' if nodes > 1 else ''}"
        link = page.locator(f"#confidence [data-confidence='{least}']")
        if number == 0:
            link.click()
        else:
            link.focus()
            page.keyboard.press("Enter")
        eventually(page, "name => document.querySelector('#list-title')?.textContent === `Nodes ${name}`", name)
        assert re.search(rf"(^| of ){nodes} nodes?$", page.inner_text("#list-total"))
        assert page.locator("#node-list tbody tr").count() == min(nodes, 50)
        page.reload()
        page.wait_for_selector("#node-list")
        assert page.inner_text("#list-title") == f"Nodes {name}"
        page.click("#tab-model")
        page.wait_for_selector("#confidence")


def test_drawing_and_tables_are_saved(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    with page.expect_download() as waiting:
        page.click("#png")
    picture = Path(waiting.value.path()).read_bytes()
    assert waiting.value.suggested_filename == f"pprop-node-{NODE}.png"
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    wide, high = (int.from_bytes(picture[at : at + 4]) for at in (16, 20))
    box = page.locator("#drawing svg.drawing").bounding_box()
    assert abs(wide - 2 * box["width"]) <= 2
    assert high > 2 * box["height"]
    assert len(picture) > 20_000  # not an empty canvas
    with page.expect_download() as waiting:
        page.click("#csv")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    column = next(name for name in rows[0] if name.startswith("contribution to "))
    total = sum(float(row[column]) for row in rows[:-1])
    assert rows[-1]["node"] == "logit"
    assert total == pytest.approx(float(rows[-1][column]), abs=1e-12)
    code = explorer.truth.classes.index(column.removeprefix("contribution to "))
    assert total == pytest.approx(float(explorer.truth.model.logits_[explorer.truth.position(NODE), code]), abs=1e-5)
    visit(page, explorer, "#view=nodes&role=validation")
    with page.expect_download() as waiting:
        page.click("#list-csv")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    assert {explorer.truth.position(row["node"]) for row in rows} == set(explorer.truth.model.stopping_nodes_.tolist())


def test_hostile_names_are_text(page: Any, explorer: Explorer) -> None:
    page.on("dialog", lambda dialog: page.said.append(dialog.message))
    for at, name in ((7, tools.IMAGE), (8, tools.SCRIPT)):
        visit(page, explorer, f"#node=n{at}&size=80")
        eventually(page, "name => document.querySelector('#node-title').textContent === name", name)
        eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", f"n{at}")
        page.locator(f"{NODE_LINKS}.centre .body").hover()
        assert page.inner_text("#tooltip .tooltip-title") == name
    visit(page, explorer, f"#node={quote(tools.HOSTILE_ID, safe='')}")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", tools.HOSTILE_ID)
    page.fill("#search-input", "<img")
    page.wait_for_selector("#search-list [role=option]")
    assert tools.IMAGE in page.inner_text("#option-0")
    page.keyboard.press("Escape")
    visit(page, explorer, "#view=nodes&q=%3C&label=%3Cb%3Epears%3C%2Fb%3E")
    assert "<b>pears</b>" in page.inner_text("#list-title")
    visit(page, explorer, "#view=model")
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('main img, main b, main i, main script').length") == 0


def test_all_is_reached_by_the_keyboard_alone(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#drawing .node') !== null"):
            break
    assert page.evaluate("document.activeElement.dataset.node") == NODE
    assert page.is_visible("#tooltip")
    halo = page.evaluate("getComputedStyle(document.activeElement.querySelector('.halo')).stroke")
    assert halo != "none"
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        other = page.evaluate("document.activeElement.dataset.node")
        if other != NODE:
            break
    assert other != NODE
    page.keyboard.press("Enter")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", other)
    eventually(page, "id => document.activeElement.dataset.node === id", other)
    page.go_back()
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", NODE)
    reached: set[str] = set()
    page.evaluate("document.activeElement.blur()")
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {
        "search-input",
        "tab-node",
        "tab-model",
        "theme",
        "size",
        "png",
        "csv",
        "alpha",
        "steps",
        "explained-class",
    } <= reached
    assert {"edge-source", "edge-target", "cut-edge", "add-edge", "copy-link", "more"} <= reached


def test_every_control_has_a_name_and_every_id_is_one(page: Any, explorer: Explorer) -> None:
    unnamed = """() => [...document.querySelectorAll('a, button, input, select, [role=link]')].filter(one => one.offsetParent !== null
        && !one.textContent.trim() && !one.getAttribute('aria-label') && !(one.id && document.querySelector(`label[for="${one.id}"]`)))
        .map(one => one.outerHTML)"""
    twice = """() => [...document.querySelectorAll('[id]')].map(one => one.id)
        .filter((id, i, all) => all.indexOf(id) !== i)"""
    for fragment in (f"#node={NODE}", "#view=model", "#view=nodes&order=confidence"):
        visit(page, explorer, fragment)
        assert page.evaluate(unnamed) == []
        assert page.evaluate(twice) == []
        assert page.locator("h1:visible").count() == 1


def test_light_and_dark_follow_the_system_and_the_switch(page: Any, explorer: Explorer) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    visit(page, explorer)
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    eventually(page, f"light => {background} !== light", light)
    dark = page.evaluate(background)
    assert sum(map(int, re.findall(r"\d+", dark)[:3])) < 150 < sum(map(int, re.findall(r"\d+", light)[:3]))
    page.click("#theme")
    assert page.evaluate(background) == light
    page.reload()
    page.wait_for_selector("#view-node.ready")
    assert page.evaluate(background) == light


@pytest.mark.parametrize("width", [360, 834])
def test_nothing_scrolls_sideways_on_narrow_screens(page: Any, explorer: Explorer, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 780})
    for fragment in (f"#node={NODE}", "#node=n7", "#view=model", "#view=nodes&order=confidence"):
        visit(page, explorer, fragment)
        wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide[0] <= wide[1], fragment


def test_an_unknown_node_is_said_in_words_and_the_search_still_works(page: Any, explorer: Explorer) -> None:
    page.goto(f"{explorer.address}#node=nobody")
    page.wait_for_selector(".notice")
    assert "nobody" in page.inner_text(".notice p")
    page.fill("#search-input", NODE)
    page.wait_for_selector("#search-list [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#view-node.ready")
    eventually(page, "() => document.querySelector('.notice') === null")
    forget_answers(page, "404")


def test_a_token_is_asked_for_and_taken_from_the_address(explorer: Explorer) -> None:
    with tools.serving(explorer.served, token="apple-pie") as address:
        context = explorer.browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("#token")
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        eventually(page, "() => document.querySelector('.notice')?.textContent.includes('wrong')")
        page.fill("#token", "apple-pie")
        page.keyboard.press("Enter")
        page.wait_for_selector("#view-node.ready")
        context.close()
        context = explorer.browser.new_context()
        page = context.new_page()
        page.goto(f"{address}#node={NODE}&token=apple-pie")
        page.wait_for_selector("#view-node.ready")
        assert "apple-pie" not in page.url
        assert centre(page) == NODE
        context.close()


def test_a_server_that_went_away_is_waited_for(explorer: Explorer) -> None:
    context = explorer.browser.new_context()
    page = context.new_page()
    with tools.serving(explorer.served) as address:
        page.goto(f"{address}#node={NODE}")
        page.wait_for_selector("#view-node.ready")
        page.wait_for_selector(NODE_LINKS)
    press_slider(page, "alpha", "ArrowRight", 1)
    page.wait_for_selector(".notice.gone")
    assert page.is_visible("#verdict")  # the last answer stays
    with tools.serving(explorer.served, port=int(re.findall(r":(\d+)/", address)[0])):
        await_bars(page, tools.softmax(explorer.truth.logits(0.11))[explorer.truth.position(NODE)])
        eventually(page, "() => document.querySelector('.notice') === null")
    context.close()


def fitted(kind: Any, graph: pprop.Graph, **settings: Any) -> Any:
    """Another kind of model of the same nodes."""
    assert graph.labels is not None
    known = [node for node in range(0, tools.SIZE, 4) if graph.labels[node] >= 0]
    model = kind(graph, hidden=8, dropout=0.0, max_epochs=5, random_state=0, backend="reference", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(known, [tools.CLASSES[graph.labels[node]] for node in known], stopping=0.3)


def test_a_model_that_is_no_sum_over_nodes_shows_its_probabilities(page: Any, explorer: Explorer) -> None:
    model = fitted(pprop.GCNClassifier, explorer.truth.graph)
    with tools.serving(tools.Served(model.fitted_, "layers")) as address:
        page.goto(f"{address}#node={NODE}")
        page.wait_for_selector("#view-node.ready")
        await_bars(page, model.predict_proba([explorer.truth.position(NODE)])[0])
        assert set(shown(page, "network")) == {"–"}
        for part in ("#drawing", "#contributors", "#alpha", "#edge-form"):
            assert not page.is_visible(part)
        page.click("#tab-model")
        page.wait_for_selector("#confusion")


def test_what_a_threshold_decides_is_said(page: Any, explorer: Explorer) -> None:
    usual = fitted(pprop.APPNPClassifier, explorer.truth.graph)
    apples = usual.predict_proba()[:, usual.classes_.tolist().index("apples")]
    limit = float(f"{np.median(apples):.3g}")  # such that it takes half of the nodes
    model = fitted(pprop.APPNPClassifier, explorer.truth.graph, threshold=limit, positive="apples")
    shares, predicted = model.predict_proba(), model.predict()
    largest = model.classes_[shares.argmax(axis=1)]
    decided = int(np.flatnonzero(predicted != largest)[0])
    plain = int(np.flatnonzero(predicted == largest)[0])
    rule = f"The threshold decided: a node is predicted as apples from a probability of {limit} on."
    with tools.serving(tools.Served(model.fitted_, "decided")) as address:
        assert model.graph_.ids is not None
        for node, said in ((decided, True), (plain, False)):
            page.goto(f"{address}#node={quote(model.graph_.ids[node])}")
            page.wait_for_selector("#view-node.ready")
            await_bars(page, shares[node])
            assert (rule in page.inner_text("#story")) is said
        page.click("#tab-model")
        page.wait_for_selector("#confusion")
        assert page.inner_text("#threshold") == model.threshold_.sentence()
        page.goto("about:blank")  # it asks nothing of a server that is about to end


def test_an_exact_model_of_a_directed_graph_is_drawn_with_arrows(page: Any, explorer: Explorer) -> None:
    matrix = sparse.csr_array(sparse.triu(explorer.truth.graph.adjacency))
    whole = explorer.truth.graph
    graph = pprop.Graph.from_scipy(
        matrix, True, features=whole.features, labels=whole.labels, class_names=tools.CLASSES
    )
    model = fitted(pprop.PPNPClassifier, graph, alpha=0.2)
    with tools.serving(tools.Served(model.fitted_, "arrows")) as address:
        page.goto(f"{address}#node=20")
        page.wait_for_selector(NODE_LINKS)
        await_bars(page, model.predict_proba([20])[0])
        assert page.inner_text("#steps-value") == "exact"
        assert "the exact solution" in page.inner_text("#trained-note")
        assert page.locator("svg.drawing.directed .edge").count() > 0
        press_slider(page, "steps", "Home", 1)
        transition = pprop.transition_matrix(graph, "row").to_scipy().toarray()
        exact = 0.2 * np.linalg.inv(np.eye(tools.SIZE) - 0.8 * transition)
        alone = np.linalg.solve(exact, model.logits_.astype(np.float64))
        await_bars(page, tools.softmax(0.8 * transition @ alone + 0.2 * alone)[20])
        press_slider(page, "steps", "End", 1)
        await_bars(page, model.predict_proba([20])[0])
        page.goto("about:blank")  # it asks nothing of a server that is about to end


def test_edits_of_a_link_that_do_not_fit_the_graph_are_taken_back(page: Any, explorer: Explorer) -> None:
    truth = explorer.truth
    at = truth.position(NODE)
    stranger = next(f"n{node}" for node in range(80, 90) if truth.graph.adjacency[at, node] == 0 and node != at)
    visit(page, explorer, f"#node={NODE}&edit=cut~{NODE}~{stranger}")
    await_bars(page, truth.model.predict_proba([at])[0])
    assert page.inner_text(".notice p").endswith("The edits were taken back.")
    await_address(page, "edit=", there=False)
    assert page.locator("#edits li").count() == 0
    page.click("#tab-model")
    eventually(page, "() => document.querySelector('.notice') === null")
    forget_answers(page, "409")


def test_a_node_that_is_met_again_does_not_shorten_the_way_back(page: Any, explorer: Explorer) -> None:
    visit(page, explorer)
    near = page.locator(f"{NODE_LINKS}:not(.centre)").nth(2)
    other = near.get_attribute("data-node")
    near.locator(".body").click()
    for there, back in ((other, NODE), (NODE, other)):
        eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", there)
        if there == other:
            page.focus(f'{NODE_LINKS}[data-node="{css(back)}"]')
            page.keyboard.press("Enter")
    assert page.locator("#crumbs li").all_inner_texts() == [NODE, other, NODE]
    page.click("#back")
    eventually(page, "id => document.querySelector('.node.centre')?.dataset.node === id", other)


def test_long_names_of_classes_lose_what_all_begin_with_and_fit_a_phone(page: Any, explorer: Explorer) -> None:
    names = [
        f"The_Fruit_Of_Trees_And_Of_Bushes/Kinds/{name}"
        for name in ("Apples", "Pears_Without_Any_Stone_At_All", "Figs")
    ]
    graph = explorer.truth.graph.replace(class_names=tuple(names))
    known = [node for node in range(0, tools.SIZE, 4) if graph.labels[node] >= 0]  # pyright: ignore[reportOptionalSubscript]
    model = pprop.LabelPropagationClassifier(graph).fit(known, [names[graph.labels[node]] for node in known])  # pyright: ignore[reportOptionalSubscript]
    with tools.serving(tools.Served(model.fitted_, "names")) as address:
        for width in (360, 800, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}#node={NODE}")
            page.wait_for_selector("#contributors tbody tr")
            assert page.locator(".bar-name").all_inner_texts() == [name.rpartition("/")[2] for name in sorted(names)]
            assert all(
                wide > 40 for wide in page.eval_on_selector_all(".track", "all => all.map(one => one.clientWidth)")
            )
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert not page.is_visible(".key-network")  # there is no network
            page.goto(f"{address}#view=model")
            page.wait_for_selector("#confusion")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto(f"{address}#node={NODE}")
        page.wait_for_selector("#contributors tbody tr")
        with page.expect_download() as download:
            page.click("#csv")
        rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
        assert rows[0][-1].startswith("contribution to")
        short = (
            "async names => { const {setClasses, called} = await import('/static/palette.js');"
            " setClasses(names); return names.map(called); }"
        )
        for whole in (["v1.25", "v1.5"], ["1/2", "1/3"], ["10:00", "10:30"]):  # what they share tells something
            assert page.evaluate(short, whole) == whole
        page.goto("about:blank")
