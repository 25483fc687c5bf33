// Where the logit of one class comes from: nodes with their exact contributions, the rest in one line, and the total.

import { el } from "./dom.js";
import { count, decimal, roundToTotal, share, signed } from "./format.js";
import { classNames, swatch } from "./palette.js";
import { nodeLink } from "./links.js";

const DIGITS = 4;

function bar(value, largest) {
  const part = el("span", { class: value < 0 ? "amount minus" : "amount plus" });
  part.style.setProperty("--p", largest > 0 ? Math.abs(value) / largest : 0);
  return el("span", { class: "diverging", "aria-hidden": "true" }, part);
}

function said(node) {
  const wrong = node.label !== null && node.label !== undefined && node.label !== node.predicted;
  const children = [swatch(node.predicted), el("span", { text: node.predicted })];
  if (wrong) children.push(el("span", { class: "faint", text: ` labelled ${node.label}` }));
  if (node.training) children.push(el("span", { class: "badge", text: "training" }));
  return el("span", { class: "said" }, children);
}

/** Fill the table with an answer of `explain`. */
export function showContributors(table, answer, id) {
  const { contributors, rest, logit } = answer;
  const cls = classNames().indexOf(answer.class);
  const shown = roundToTotal([...contributors.map((one) => one.contribution), rest.contribution], logit, DIGITS);
  const largest = Math.max(...contributors.map((one) => Math.abs(one.contribution)), Math.abs(rest.contribution));
  const rows = contributors.map((node, i) =>
    el(
      "tr",
      { data: { contributor: node.id } },
      el("td", { class: "who" }, nodeLink(node, 70), String(node.id) === id ? el("span", { class: "badge", text: "itself" }) : null, el("div", { class: "under" }, said(node))),
      el("td", { class: "number wide", text: share(node.weight) }),
      el("td", { class: "number wide faint", text: cls < 0 ? "" : share(node.network[cls]) }),
      el("td", { class: "bar-cell" }, bar(node.contribution, largest)),
      el("td", { class: "number", title: String(node.contribution), text: signed(shown[i], DIGITS) }),
    ),
  );
  const others = el(
    "tr",
    { class: "rest" },
    el("th", { scope: "row", text: rest.nodes === 0 ? "No other node" : `The other ${count(rest.nodes)} nodes` }),
    el("td", { class: "number wide", text: share(rest.weight) }),
    el("td", { class: "wide" }),
    el("td", { class: "bar-cell" }, bar(rest.contribution, largest)),
    el("td", { class: "number", id: "rest", title: String(rest.contribution), text: signed(shown.at(-1), DIGITS) }),
  );
  const weight = contributors.reduce((sum, one) => sum + one.weight, rest.weight);
  const total = el(
    "tr",
    { class: "total" },
    el("th", { scope: "row", text: `Logit of ${answer.class}` }),
    el("td", { class: "number wide", text: share(weight) }),
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
