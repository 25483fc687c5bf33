// Where the logit of one class comes from: nodes with their exact contributions, the rest in one line, and the total.

import { el } from "./dom.js";
import { count, decimal, percent, roundToTotal, signed, weight } from "./format.js";
import { called, classNames, nameOf, swatch } from "./palette.js";
import { isUsed } from "./roles.js";
import { nodeLink } from "./links.js";

const DIGITS = 4;

/** A bar on an axis that has room for the largest term of each sign. */
function bar(value, least, most) {
  const span = most - least || 1;
  const part = el("span", { class: value < 0 ? "amount minus" : "amount plus" });
  part.style.setProperty("--p", Math.abs(value) / span);
  const box = el("span", { class: "diverging", "aria-hidden": "true" }, part);
  box.style.setProperty("--zero", -least / span);
  return box;
}

function said(node, itself) {
  const wrong = node.label !== null && node.label !== undefined && node.label !== node.predicted;
  const children = [swatch(node.predicted), nameOf(node.predicted)];
  if (wrong) children.push(el("span", { class: "faint", text: ` labelled ${called(node.label)}` }));
  if (itself) children.push(el("span", { class: "badge", text: "itself" }));
  if (isUsed(node)) children.push(el("span", { class: "badge", text: node.role }));
  return el("span", { class: "said" }, children);
}

/** Fill the table with an answer of `explain`. */
export function showContributors(table, answer, id) {
  const { contributors, rest, logit } = answer;
  const cls = classNames().indexOf(answer.class);
  const terms = [...contributors.map((one) => one.contribution), rest.contribution];
  const shown = roundToTotal(terms, logit, DIGITS);
  // The rest is many nodes: its bar would make all others look small.
  const single = terms.slice(0, -1);
  const [least, most] = [Math.min(0, ...single), Math.max(0, ...single)];
  const rows = contributors.map((node, i) =>
    el(
      "tr",
      { data: { contributor: node.id } },
      el("td", { class: "who" }, nodeLink(node, 70), el("span", { class: "under" }, said(node, String(node.id) === id))),
      el("td", { class: "number wide", text: weight(node.weight) }),
      el("td", { class: "number wide faint", text: node.network ? percent(node.network[cls]) : "–" }),
      el("td", { class: "bar-cell" }, bar(node.contribution, least, most)),
      el("td", { class: "number", title: String(node.contribution), text: signed(shown[i], DIGITS) }),
    ),
  );
  const others = el(
    "tr",
    { class: "rest" },
    el("th", { scope: "row", text: rest.nodes === 0 ? "No other node" : `The other ${count(rest.nodes)} nodes` }),
    el("td", { class: "number wide", text: weight(rest.weight) }),
    el("td", { class: "wide" }),
    el("td", { class: "bar-cell" }),
    el("td", { class: "number", id: "rest", title: String(rest.contribution), text: signed(shown.at(-1), DIGITS) }),
  );
  const weights = contributors.reduce((sum, one) => sum + one.weight, rest.weight);
  const total = el(
    "tr",
    { class: "total" },
    el("th", { scope: "row", text: `Logit of ${called(answer.class)}` }),
    el("td", { class: "number wide", text: weight(weights) }),
    el("td", { class: "wide" }),
    el("td", { class: "bar-cell" }),
    el("td", { class: "number", id: "logit", title: String(logit), text: decimal(logit, DIGITS) }),
  );
  table.tBodies[0].replaceChildren(...rows);
  table.tFoot.replaceChildren(others, total);
}

export function contributorsTable() {
  const head = ["Node", "Weight", "Its network", "", "Contribution"];
  const hints = ["", "Share of this node's own prediction in the result", "Probability that the network gives the class for this node alone", "", "Weight times the network's logit of the class"];
  const cells = head.map((text, i) => el("th", { scope: "col", class: ["who", "number wide", "number wide", "bar-cell", "number"][i], title: hints[i] || null, text }));
  return el("table", { class: "contributors", id: "contributors" }, el("thead", {}, el("tr", {}, cells)), el("tbody"), el("tfoot"));
}
