// The explorer: starts the page, and gives every state to the view that shows it.

import * as api from "./api.js";
import { byId, el, put } from "./dom.js";
import { plural } from "./format.js";
import { ModelView } from "./model-view.js";
import { NodeList } from "./node-list.js";
import { NodeView } from "./node-view.js";
import { clearNotice, onRetry, progress, report } from "./notices.js";
import { setClasses } from "./palette.js";
import { makeSearch } from "./search.js";
import { begin, current, go, linkTo, listen } from "./state.js";
import { hideTooltip } from "./tooltip.js";

function tab(id, patch) {
  const link = byId(id);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(patch(), { push: true });
  });
  return (state) => {
    const here = (state.view === "node") === (patch().view === "node");
    link.href = linkTo(patch());
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  };
}

function build(model) {
  setClasses(model.classes);
  byId("graph-name").textContent = model.graph ?? model.name;
  put(
    byId("foot"),
    el("span", { text: `pprop ${model.pprop}` }),
    el("span", { text: `${model.kind} on ${plural(model.nodes, "node")} and ${plural(model.edges, "edge")}` }),
    api.hasToken() ? null : el("a", { href: "openapi.json", text: "HTTP interface" }), // a link shows no token
  );
  const views = {
    node: new NodeView(byId("view-node"), model),
    model: new ModelView(byId("view-model"), model),
    nodes: new NodeList(byId("view-nodes")),
  };
  const tabs = [tab("tab-node", () => ({ view: "node" })), tab("tab-model", () => ({ view: "model" }))];
  byId("home").addEventListener("click", (event) => {
    event.preventDefault();
    go({ view: "node", id: String(model.example), edits: [], alpha: null, steps: null, cls: null }, { push: true });
  });
  makeSearch(report);
  listen((state, previous) => {
    hideTooltip();
    for (const name of Object.keys(views)) byId(`view-${name}`).hidden = name !== state.view;
    for (const show of tabs) show(state);
    views[state.view].show(state, previous);
    if (state.view !== previous.view && previous.id !== null) {
      for (const source of ["trained", "result", "explained", "drawn", "edits"]) clearNotice(source);
      scrollTo({ top: 0, behavior: "instant" });
    }
  });
  onRetry(() => {
    for (const view of Object.values(views)) view.forget();
    views[current().view].show(current(), current());
  });
  byId("waiting").remove();
  begin(model.example);
}

async function start() {
  try {
    const model = await progress(api.model());
    clearNotice();
    build(model);
  } catch (error) {
    report(error);
  }
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
api.takeToken();
onRetry(start);
start();
