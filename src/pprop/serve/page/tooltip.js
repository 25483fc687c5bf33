// One tooltip for the drawing: beside what it is about, inside the window.

import { el, put } from "./dom.js";
import { percent, shorten, title, weight } from "./format.js";
import { classLabel } from "./palette.js";
import { isUsed, useOf } from "./roles.js";

let box = null;

function ensure() {
  if (!box) {
    box = el("div", { class: "tooltip", id: "tooltip", role: "tooltip", hidden: true });
    document.body.append(box);
  }
  return box;
}

export function hideTooltip() {
  if (box) box.hidden = true;
}

/** What is said about a node, as lines. */
function lines(node, isCentre) {
  const name = title(node);
  const rows = [
    ["predicted", [classLabel(node.predicted), el("span", { class: "number", text: percent(node.confidence) })]],
    ["labelled", [node.label === null ? "no label" : classLabel(node.label)]],
    ["weight", [node.influence === null ? "not among the nodes drawn" : weight(node.influence)]],
  ];
  return [
    el("p", { class: "tooltip-title", text: shorten(name, 120) }),
    name === String(node.id) ? null : el("p", { class: "faint", text: String(node.id) }),
    el("dl", {}, rows.flatMap(([term, what]) => [el("dt", { text: term }), el("dd", {}, what)])),
    isUsed(node) ? el("p", { class: "faint", text: useOf(node) }) : null,
    el("p", { class: "faint", text: isCentre ? "The node that you look at." : "Click to walk there." }),
  ];
}

export function showTooltip(node, isCentre, target) {
  const tip = ensure();
  put(tip, ...lines(node, isCentre));
  tip.hidden = false;
  const at = target.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const below = at.bottom + 10 + size.height < innerHeight || at.top < size.height + 10;
  const left = Math.max(8, Math.min(room - size.width - 8, at.left + at.width / 2 - size.width / 2));
  tip.style.left = `${Math.round(left + scrollX)}px`;
  tip.style.top = `${Math.round((below ? at.bottom + 10 : at.top - size.height - 10) + scrollY)}px`;
}

/** The same in one sentence, for a label that is read aloud. */
export function describe(node, isCentre) {
  const name = title(node);
  const parts = [name === String(node.id) ? `Node ${name}` : `${name}, node ${node.id}`];
  if (isCentre) parts.push("the centre");
  parts.push(`predicted ${node.predicted}, ${percent(node.confidence, 0)}`);
  if (node.label !== null && node.label !== undefined) parts.push(node.label === node.predicted ? "labelled so" : `labelled ${node.label}`);
  if (isUsed(node)) parts.push(`${node.role} node`);
  if (node.influence !== null) parts.push(`weight ${weight(node.influence)}`);
  return parts.join(", ");
}

addEventListener("scroll", hideTooltip, { passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && hideTooltip());
