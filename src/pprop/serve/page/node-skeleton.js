// The places of the view of one node, in the order in which they are read.

import { el, svg } from "./dom.js";
import { called, classLabel, classNames } from "./palette.js";

const SIZES = [15, 40, 80, 150];

function legend(roles) {
  const sign = (kind, ...shapes) => svg("svg", { class: `sign ${kind}`, viewBox: "-11 -11 22 22", "aria-hidden": "true" }, shapes);
  const marks = [
    [sign("training", svg("circle", { class: "ring", r: 9 }), svg("circle", { class: "body", r: 5 })), "training node", "training"],
    [sign("validation", svg("circle", { class: "ring", r: 9 }), svg("circle", { class: "body", r: 5 })), "validation node", "validation"],
    [sign("test", svg("circle", { class: "body", r: 5 })), "test or unlabelled node", "others"],
    [sign("wrong", svg("circle", { class: "body", r: 7 }), svg("circle", { class: "rim", r: 7 })), "rim: its label is another class"],
    [sign("size", svg("circle", { class: "body", r: 2.5, cx: -7 }), svg("circle", { class: "body", r: 6, cx: 4 })), "size: weight in the prediction"],
  ];
  return el(
    "div",
    { class: "legend" },
    el("ul", { class: "legend-classes", "aria-label": "Colours of the classes" }, classNames().map((name) => el("li", {}, classLabel(name)))),
    el("ul", { class: "legend-marks faint", "aria-label": "Marks" }, marks.map(([mark, text, role]) => el("li", {}, mark, el("span", { text }), roles[role] ?? null))),
  );
}

const button = (id, text, kind = "plain") => el("button", { type: "button", class: kind, id, text });

function section(id, heading, ...children) {
  return el("section", { class: `part part-${id}`, "aria-labelledby": `h-${id}` }, el("div", { class: "part-head" }, el("h2", { id: `h-${id}`, text: heading }), ...children));
}

/** Build the places inside `host` and return them by name. What the model cannot answer has no place. */
export function skeleton(host, model) {
  const parts = {
    root: host,
    back: el("button", { type: "button", class: "plain", id: "back", "aria-label": "Back to what was shown before" }, "← Back"),
    crumbs: el("ol", { class: "crumbs", id: "crumbs" }),
    title: el("h1", { id: "node-title" }),
    sub: el("p", { class: "faint", id: "node-sub" }),
    verdict: el("p", { class: "verdict", id: "verdict" }),
    story: el("p", { class: "story", id: "story" }),
    textBody: el("p", { class: "text-body" }),
    link: button("copy-link", "Copy link"),
    png: button("png", "Save PNG"),
    csv: button("csv", "Save CSV"),
    more: button("more", "Show 50"),
    caption: el("p", { class: "faint caption", id: "caption" }),
    roles: Object.fromEntries(["training", "validation", "others"].map((role) => [role, el("span", { class: "number", data: { role } })])),
    size: el("select", { id: "size", "aria-label": "Nodes drawn" }, SIZES.map((n) => el("option", { value: n, text: `${n} nodes` }))),
    drawing: el("div", { class: "drawing-host empty", id: "drawing" }),
    edgeText: el("span", { class: "number" }),
    edgeCut: button("edge-cut", "Cut this edge", "plain strong"),
    edgeClose: el("button", { type: "button", class: "plain quiet", "aria-label": "Let go of the edge", text: "×" }),
    cls: el("select", { id: "explained-class", "aria-label": "Class whose logit is explained" }, classNames().map((name) => el("option", { value: name, text: called(name) }))),
    edited: el("p", { class: "note differs", id: "edited", hidden: true, text: "Contributors on the graph with your edits." }),
    adds: el("p", { class: "faint" }),
    table: el("div", { class: "table-host" }),
    bars: section("bars", "Class probabilities"),
    sliders: section("sliders", "Propagation"),
    whatIf: section("what-if", "What if"),
  };
  parts.text = el("details", { class: "text", hidden: true }, el("summary", { text: "Text of this node" }), parts.textBody);
  parts.edgeBar = el("div", { class: "edge-bar", id: "edge-bar", hidden: true }, parts.edgeText, parts.edgeCut, parts.edgeClose);
  const head = el(
    "header",
    { class: "node-head" },
    el("nav", { class: "way", "aria-label": "Nodes walked" }, parts.back, parts.crumbs, parts.link),
    el("div", { class: "node-title" }, parts.title, parts.sub),
    el("div", { class: "node-verdict" }, parts.verdict, parts.story),
    parts.text,
  );
  const picture = section("drawing", "Neighbourhood", el("span", { class: "tools" }, parts.size, parts.png));
  parts.drawing.append(parts.edgeBar);
  picture.append(parts.drawing, parts.caption, legend(parts.roles));
  const why = section("contributors", "Where it comes from", el("span", { class: "tools" }, parts.cls, parts.csv));
  why.append(parts.adds, parts.edited, parts.table, parts.more);
  if (model.explains === false) for (const part of [picture, why]) part.hidden = true;
  if (model.spreads === false) for (const part of [parts.sliders, parts.whatIf]) part.hidden = true;
  host.append(head, el("div", { class: "node-grid" }, picture, parts.bars, parts.sliders, parts.whatIf, why));
  return parts;
}
