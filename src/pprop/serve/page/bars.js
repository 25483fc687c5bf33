// Class probabilities in pairs: the network alone, and after propagation. A tick marks the model as it was trained where
// what is shown differs from it.

import { el, put, write } from "./dom.js";
import { percent } from "./format.js";
import { classNames, colour, nameOf, swatch } from "./palette.js";

const LONG = 10;
const SHORT = 6;

export class Bars {
  #rows = new Map();
  #list = el("ol", { class: "bars", id: "bars" });
  #more = el("button", { type: "button", class: "plain quiet", hidden: true });
  #all = false;
  #last = null;

  /** `pick(name)`: a class was chosen to be explained. */
  constructor(host, pick) {
    const key = el(
      "p",
      { class: "bars-key faint" },
      el("span", { class: "key-network", text: "network alone" }),
      el("span", { class: "key-result", text: "after propagation" }),
      el("span", { class: "key-tick", id: "bars-tick-key", hidden: true, text: "as trained" }),
    );
    host.append(key, this.#list, this.#more);
    classNames().forEach((name, i) => this.#rows.set(name, this.#row(name, i, pick)));
    this.#list.append(...[...this.#rows.values()].map((row) => row.item));
    this.#more.addEventListener("click", () => {
      this.#all = !this.#all;
      this.#fold();
    });
  }

  #row(name, index, pick) {
    const network = el("span", { class: "bar network" });
    const result = el("span", { class: "bar result" });
    const tick = el("span", { class: "tick", hidden: true });
    const before = el("span", { class: "value faint", data: { network: index } });
    const after = el("span", { class: "value", data: { result: index } });
    const button = el("button", { type: "button", class: "bar-name", on: { click: () => pick(name) } }, swatch(name), nameOf(name));
    const item = el("li", { class: colour(name), data: { class: index } }, button, el("span", { class: "track" }, network, result, tick), el("span", { class: "values" }, before, after));
    return { item, network, result, tick, before, after, button };
  }

  /** `shown`: the prediction; `base`: as trained and without edits, or null where that is the same; `cls`: explained. */
  show(shown, base, cls) {
    this.#last = shown;
    classNames().forEach((name, i) => {
      const row = this.#rows.get(name);
      const alone = shown.network ? shown.network[i] : null;
      row.network.style.setProperty("--p", alone ?? 0);
      row.result.style.setProperty("--p", shown.probabilities[i]);
      write(row.before, alone === null ? "–" : percent(alone));
      write(row.after, percent(shown.probabilities[i]));
      row.tick.hidden = base === null;
      if (base) row.tick.style.setProperty("--p", base.probabilities[i]);
      row.item.classList.toggle("first", name === shown.predicted);
      row.button.setAttribute("aria-pressed", String(name === cls));
      row.button.setAttribute("aria-label", `${name}: ${alone === null ? "" : `network alone ${percent(alone)}, `}after propagation ${percent(shown.probabilities[i])}. Explain this class.`);
    });
    document.getElementById("bars-tick-key").hidden = base === null;
    this.#fold();
  }

  /** Of many classes only the likeliest are shown until one asks for the others. */
  #fold() {
    const names = classNames();
    const many = names.length > LONG;
    this.#more.hidden = !many;
    if (!many || !this.#last) return;
    const peak = names.map((_, i) => Math.max(this.#last.network?.[i] ?? 0, this.#last.probabilities[i]));
    const rank = new Set([...peak.keys()].sort((a, b) => peak[b] - peak[a]).slice(0, SHORT));
    names.forEach((name, i) => (this.#rows.get(name).item.hidden = !this.#all && !rank.has(i)));
    put(this.#more, this.#all ? "Show the likeliest classes" : `Show all ${names.length} classes`);
  }
}
