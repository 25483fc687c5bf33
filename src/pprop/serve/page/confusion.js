// The confusion matrix: rows are labels, columns predictions; every cell leads to its nodes.

import { el } from "./dom.js";
import { count, percent } from "./format.js";
import { listLink } from "./links.js";
import { nameOf, swatch } from "./palette.js";

const MANY = 9;

function cell(classes, row, column, n, total) {
  if (n === 0) return el("td", { class: "zero", text: "·", "aria-label": "0" });
  const said = row === column ? `${n} nodes labelled ${classes[row]} and predicted so` : `${n} nodes labelled ${classes[row]} but predicted ${classes[column]}`;
  const link = listLink(
    { label: classes[row], predicted: classes[column], role: "test" },
    { "aria-label": said, title: `${said} (${percent(n / total, 0)} of the row)`, data: { cell: `${row} ${column}` } },
    count(n),
  );
  // Errors are small parts of a row: a deeper tint lets them be seen.
  link.style.setProperty("--p", Math.min(1, (row === column ? 1 : 2.2) * (n / total)).toFixed(4));
  return el("td", { class: row === column ? "right" : "wrong" }, link);
}

export function confusionTable(classes, matrix) {
  const sums = matrix.map((row) => row.reduce((sum, n) => sum + n, 0));
  const head = classes.map((name) => el("th", { scope: "col", title: name }, el("span", { class: "column-name" }, swatch(name), nameOf(name))));
  const rows = matrix.map((row, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "row-name" }, nameOf(classes[i]), swatch(classes[i]))),
      row.map((n, j) => cell(classes, i, j, n, sums[i])),
      el("td", { class: "number faint recall", text: sums[i] === 0 ? "" : percent(row[i] / sums[i], 0) }),
    ),
  );
  return el(
    "table",
    { class: classes.length > MANY ? "confusion many" : "confusion", id: "confusion" },
    el("thead", {}, el("tr", {}, el("td", { class: "corner faint" }, el("span", { text: "label ↓  predicted →" })), head, el("th", { scope: "col", class: "recall faint", text: "right" }))),
    el("tbody", {}, rows),
  );
}
