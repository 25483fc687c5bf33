// A list of nodes: what a cell of the model's view, or a class of the search, leads to.

import { search } from "./api.js";
import { el } from "./dom.js";
import { saveCsv } from "./exports.js";
import { count, percent, plural } from "./format.js";
import { Lane } from "./lane.js";
import { nodeLink, stateLink } from "./links.js";
import { announce, clearNotice, progress, report } from "./notices.js";
import { classLabel } from "./palette.js";
import { isUsed } from "./roles.js";

const PAGE = 50;
const BLOCK = 200;

/** What a filter says, in words. */
function describe({ q, label, predicted, role, distance, confidence_from: from, confidence_to: to, order }) {
  const parts = [];
  if (q) parts.push(`matching “${q}”`);
  if (label) parts.push(`labelled ${label}`);
  if (predicted) parts.push(label && label !== predicted ? `but predicted ${predicted}` : label ? "and predicted so" : `predicted ${predicted}`);
  if (role === "unlabelled") parts.push("without a label");
  else if (role) parts.push(`used for ${role}`);
  if (distance === "unreachable") parts.push("that no training node reaches");
  else if (distance === "0") parts.push("used for training");
  else if (distance) parts.push(`${plural(Number(distance), "step")} from a training node`);
  if (from || to) parts.push(`${percent(Number(from ?? 0), 0)} to ${percent(Number(to ?? 1), 0)} sure`);
  if (order === "confidence") parts.push("least certain first");
  return parts.length === 0 ? "All nodes" : `Nodes ${parts.join(", ").replace(", but", " but").replace(", and", " and")}`;
}

export class NodeList {
  #host;
  #lane;

  constructor(host) {
    this.#host = host;
    this.#lane = new Lane((state, signal) => progress(search({ order: "confidence", ...state.filter, limit: PAGE }, signal)), (found, state) => this.#build(found, state), (error) => report(error, "list"));
  }

  forget() {
    this.#lane.forget();
  }

  show(state) {
    document.title = `${describe(state.filter)} · pprop explorer`;
    this.#lane.want(JSON.stringify(state.filter), state);
  }

  #build({ total, nodes }, state) {
    clearNotice("list");
    const offset = Number(state.filter.offset ?? 0);
    const save = el("button", { type: "button", class: "plain", id: "list-csv", text: "Save CSV" });
    save.addEventListener("click", () => this.#csv(state.filter, save).catch(report));
    const rows = nodes.map((node) =>
      el(
        "tr",
        { data: { node: node.id } },
        el("th", { scope: "row" }, nodeLink(node, 90)),
        el("td", {}, classLabel(node.predicted)),
        el("td", { class: "number", text: percent(node.confidence) }),
        el("td", {}, node.label === null ? el("span", { class: "faint", text: "no label" }) : classLabel(node.label), isUsed(node) ? el("span", { class: "badge", text: node.role }) : null),
      ),
    );
    const head = ["node", "predicted", "sure", "label"].map((text) => el("th", { scope: "col", class: text === "sure" ? "number" : "", text }));
    this.#host.replaceChildren(
      el("nav", { class: "way" }, stateLink({ view: "model" }, {}, "← Model")),
      el("div", { class: "part-head" }, el("h1", { id: "list-title", text: describe(state.filter) }), el("span", { class: "tools" }, save)),
      el("p", { class: "faint", id: "list-total", text: total > nodes.length ? `${count(offset + 1)} to ${count(offset + nodes.length)} of ${plural(total, "node")}` : plural(total, "node") }),
      total === 0
        ? el("p", { text: "There is no such node." })
        : el("table", { class: "plain-table list", id: "node-list" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)),
      this.#pager(state, offset, total),
    );
  }

  #pager(state, offset, total) {
    if (total <= PAGE) return el("nav", { hidden: true });
    const page = (to, text) => {
      const filter = { ...state.filter, offset: String(to) };
      if (to === 0) delete filter.offset;
      return stateLink({ view: "nodes", filter }, {}, text);
    };
    return el(
      "nav",
      { class: "pager", "aria-label": "Pages" },
      offset > 0 ? page(Math.max(0, offset - PAGE), "← Before") : null,
      offset + PAGE < total ? page(offset + PAGE, "Next →") : null,
    );
  }

  /** All nodes of the list, not only those of this page. */
  async #csv(filter, button) {
    button.disabled = true;
    try {
      const rows = [];
      const { offset: _, ...rest } = filter;
      for (let total = 1; rows.length < total; ) {
        const found = await progress(search({ order: "confidence", ...rest, limit: BLOCK, offset: rows.length }));
        if (found.nodes.length === 0) break;
        rows.push(...found.nodes.map((node) => [node.id, node.name, node.predicted, node.confidence, node.label, node.role]));
        total = found.total;
      }
      saveCsv(`pprop-${describe(filter)}`, ["node", "name", "predicted", "confidence", "label", "role"], rows);
      announce(`${plural(rows.length, "node")} saved as CSV.`);
    } finally {
      button.disabled = false;
    }
  }
}
