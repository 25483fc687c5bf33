// The view of the model: where it is right, wrong and unsure. Every number leads to the nodes that it counts.

import * as api from "./api.js";
import { confusionTable } from "./confusion.js";
import { el } from "./dom.js";
import { saveCsv } from "./exports.js";
import { count, percent, plural } from "./format.js";
import { listLink, nodeLink } from "./links.js";
import { progress, report } from "./notices.js";
import { classLabel } from "./palette.js";
import { ROLES } from "./roles.js";

const NUMBER = "number";
const rate = (x) => (x === null || x === undefined ? "–" : percent(x));

function meter(value, tick, name) {
  if (value === null || value === undefined) return el("span", { class: "meter none" });
  const box = el("span", { class: "meter", title: name });
  const bar = el("span", { class: "bar" });
  bar.style.setProperty("--p", value);
  box.append(bar);
  if (tick !== null && tick !== undefined) {
    const mark = el("span", { class: "tick" });
    mark.style.setProperty("--p", tick);
    box.append(mark);
  }
  return box;
}

function table(id, head, rows) {
  return el(
    "table",
    { class: "plain-table", id },
    el("thead", {}, el("tr", {}, head.map(([text, kind]) => el("th", { scope: "col", class: kind, text })))),
    el("tbody", {}, rows),
  );
}

function section(id, heading, lead, ...children) {
  return el("section", { class: `part part-${id}`, "aria-labelledby": `h-${id}` }, el("div", { class: "part-head" }, el("h2", { id: `h-${id}`, text: heading })), el("p", { class: "faint", text: lead }), ...children);
}

function head(model, found) {
  const facts = [
    ["nodes", count(model.nodes)], ["edges", count(model.edges)], ["features", count(model.features)],
    ...ROLES.map((role) => [`${role} nodes`, listLink({ role }, { data: { role } }, count(model[`${role}_nodes`]))]), ["alpha", model.alpha === null ? "none" : String(model.alpha)], ["steps", model.alpha === null ? "none" : model.steps === null ? "exact" : String(model.steps)],
  ];
  const right = found.accuracy === null
    ? "There are no test nodes: all labels are used for training or validation."
    : `right on the ${plural(found.tested, "test node")}`;
  return el(
    "header",
    { class: "model-head" },
    el("h1", { id: "model-title", text: model.graph === null ? model.name : `${model.kind} on ${model.graph}` }),
    el("p", { class: "verdict" }, found.accuracy === null ? null : el("span", { class: "number", id: "accuracy", text: percent(found.accuracy) }), el("span", { class: "story", text: right })),
    model.threshold === null ? null : el("p", { class: "story", id: "threshold", text: model.threshold.sentence }),
    el("dl", { class: "facts" }, facts.map(([term, value]) => el("div", {}, el("dt", { text: term }), el("dd", {}, value)))),
  );
}

function distanceRows(rows) {
  return rows.map((row) => {
    const filter = { distance: row.distance === null ? "unreachable" : String(row.distance) };
    const name = row.distance === null ? "none" : String(row.distance);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, listLink(filter, { data: { distance: filter.distance } }, name)),
      el("td", { class: "number", text: count(row.nodes) }),
      el("td", { class: "meter-cell" }, meter(row.accuracy, row.network_accuracy, `network alone ${rate(row.network_accuracy)}`)),
      el("td", { class: "number", text: rate(row.accuracy) }),
      el("td", { class: "number faint", text: rate(row.network_accuracy) }),
    );
  });
}

function classRows(rows) {
  const most = Math.max(...rows.map((row) => Math.max(row.labelled, row.predicted)), 1);
  return rows.map((row) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, classLabel(row.name)),
      el("td", { class: "meter-cell" }, meter(row.predicted / most, row.labelled / most, `${row.predicted} predicted, ${row.labelled} labelled`)),
      el("td", { class: "number" }, listLink({ predicted: row.name }, { data: { predicted: row.name } }, count(row.predicted))),
      ...ROLES.slice(0, 3).map((role) => el("td", { class: "number" }, listLink({ label: row.name, role }, {}, count(row[role])))),
    ),
  );
}

function confidenceRows(bins) {
  return bins.filter((bin) => bin.nodes > 0).map((bin) => {
    const name = `${percent(bin.from, 0)} to ${percent(bin.to, 0)}`;
    const filter = { confidence_from: String(bin.from), confidence_to: String(bin.to) };
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, listLink(filter, { "aria-label": `${name} sure: ${plural(bin.nodes, "node")}`, data: { confidence: filter.confidence_from } }, name)),
      el("td", { class: "number", text: count(bin.nodes) }),
      el("td", { class: "meter-cell" }, meter(bin.accuracy, (bin.from + bin.to) / 2, "tick: the probability itself")),
      el("td", { class: "number", text: rate(bin.accuracy) }),
    );
  });
}

function uncertainRows(nodes) {
  return nodes.map((node) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, nodeLink(node, 60)),
      el("td", {}, classLabel(node.predicted)),
      el("td", { class: "number", text: percent(node.confidence) }),
      el("td", {}, node.label === null ? el("span", { class: "faint", text: "no label" }) : node.label === node.predicted ? el("span", { class: "faint", text: "right" }) : classLabel(node.label)),
    ),
  );
}

export class ModelView {
  #host;
  #model;
  #found = null;
  #asking = false;

  constructor(host, model) {
    this.#host = host;
    this.#model = model;
  }

  forget() {
    this.#found = null;
  }

  async show() {
    document.title = `${this.#model.graph ?? this.#model.name} · pprop explorer`;
    const { live } = this.#model; // such a graph may be another one by now
    if ((this.#found && !live) || this.#asking) return;
    this.#asking = true;
    try {
      this.#found = await progress(api.diagnostics());
      if (live) this.#model = await progress(api.model());
      this.#build(this.#found);
    } catch (error) {
      report(error);
    } finally {
      this.#asking = false;
    }
  }

  #build(found) {
    const classes = this.#model.classes;
    const save = el("button", { type: "button", class: "plain", id: "confusion-csv", text: "Save CSV" });
    save.addEventListener("click", () => saveCsv("pprop-confusion", ["label", ...classes], found.confusion.map((row, i) => [classes[i], ...row])));
    const confusion = section("confusion", "Labels against predictions", "Rows are labels, columns predictions, of test nodes. A cell leads to its nodes.",
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, confusionTable(classes, found.confusion)));
    confusion.querySelector(".part-head").append(el("span", { class: "tools" }, save));
    this.#host.replaceChildren(
      head(this.#model, found),
      el(
        "div",
        { class: "model-grid" },
        el("div", { class: "column" }, confusion, this.#distance(found), this.#confidence(found)),
        el("div", { class: "column" }, this.#classes(found), this.#uncertain(found)),
      ),
    );
  }

  #distance(found) {
    return section("distance", "Distance to training", "Accuracy on test nodes by the number of steps to the nearest training node. The tick is the accuracy of the network alone, by its most probable class.",
      table("by-distance", [["steps", ""], ["nodes", NUMBER], ["", "meter-cell"], ["accuracy", NUMBER], ["network", NUMBER]], distanceRows(found.distance)));
  }

  #confidence(found) {
    return section("confidence", "Accuracy by probability", "Accuracy on test nodes by the probability of the predicted class, which is the tick. A range leads to its nodes.",
      table("confidence", [["probability", ""], ["nodes", NUMBER], ["", "meter-cell"], ["accuracy", NUMBER]], confidenceRows(found.confidence)));
  }

  #classes(found) {
    return section("classes", "Class sizes", "Number of nodes by predicted class. The tick is the number of nodes with that label.",
      table("class-sizes", [["class", ""], ["", "meter-cell"], ["predicted", NUMBER], ...ROLES.slice(0, 3).map((role) => [role, NUMBER])], classRows(found.classes)));
  }

  #uncertain(found) {
    return section("uncertain", "Least certain", `The ${plural(found.uncertain.length, "node")} whose predicted class has the smallest probability.`,
      table("uncertain", [["node", ""], ["predicted", ""], ["sure", NUMBER], ["label", ""]], uncertainRows(found.uncertain)),
      el("p", { class: "more-link" }, listLink({ order: "confidence" }, {}, "All nodes, least certain first")));
  }
}
