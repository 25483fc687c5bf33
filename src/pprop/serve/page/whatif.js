// What if: cut or add an edge, and see the prediction before and after. The graph of the server stays as it is.

import { whatIf } from "./api.js";
import { el, put, write } from "./dom.js";
import { addEdit, canRedo, canUndo, dropAll, dropEdit, redo, undo } from "./edits.js";
import { count, percent, plural } from "./format.js";
import { nodeLink } from "./links.js";
import { announce, report } from "./notices.js";
import { called, classLabel } from "./palette.js";
import { current } from "./state.js";

const sentence = ({ op, source, target }) => `${op === "cut" ? "Cut" : "Add"} ${source} – ${target}`;

export class WhatIf {
  #directed;
  #source = el("input", { id: "edge-source", autocomplete: "off", spellcheck: "false" });
  #target = el("input", { id: "edge-target", autocomplete: "off", spellcheck: "false", placeholder: "id" });
  #said = el("p", { class: "form-error", id: "edit-error", role: "alert", hidden: true });
  #list = el("ol", { class: "edits", id: "edits" });
  #result = el("div", { id: "what-if-result" });
  #undo = el("button", { type: "button", class: "plain", id: "undo", text: "Undo", "aria-keyshortcuts": "Control+Z", on: { click: undo } });
  #redo = el("button", { type: "button", class: "plain", id: "redo", text: "Redo", "aria-keyshortcuts": "Control+Shift+Z", on: { click: redo } });
  #clear = el("button", { type: "button", class: "plain", id: "clear-edits", text: "Remove all edits", on: { click: dropAll } });

  constructor(host, directed) {
    this.#directed = directed;
    const form = el(
      "form",
      { class: "edge-form", id: "edge-form", "aria-label": "Edit an edge" },
      el("label", { for: "edge-source", text: "From" }),
      this.#source,
      el("label", { for: "edge-target", text: "to" }),
      this.#target,
      el("span", { class: "buttons" }, el("button", { type: "submit", value: "cut", id: "cut-edge", text: "Cut" }), el("button", { type: "submit", value: "add", id: "add-edge", text: "Add" })),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.attempt({ op: event.submitter?.value ?? "add", source: this.#source.value.trim(), target: this.#target.value.trim() });
    });
    host.append(
      el("p", { class: "faint", text: "Choose an edge in the drawing, or name two nodes. The graph of the server stays as it is." }),
      form,
      this.#said,
      this.#list,
      el("div", { class: "buttons edit-tools" }, this.#undo, this.#redo, this.#clear),
      this.#result,
    );
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input:not([type=range]), textarea");
      if (typing || event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || current().view !== "node") return;
      event.preventDefault();
      if (event.shiftKey) redo();
      else undo();
    });
  }

  /** Put an edge into the form. */
  fill(edge) {
    this.#source.value = String(edge.source);
    this.#target.value = String(edge.target);
  }

  #fail(message) {
    this.#said.hidden = message === null;
    write(this.#said, message ?? "");
  }

  /** Ask the server whether an edit is possible, then make it. */
  async attempt(edit) {
    this.#fail(null);
    if (!edit.source || !edit.target) return this.#fail("Name both ends of the edge.");
    const state = current();
    try {
      const opposite = state.edits.some((one) => one.op !== edit.op && [one.source, one.target].every((end) => end === edit.source || end === edit.target));
      if (!opposite) await whatIf({ ...state, cls: null, edits: [...state.edits, edit] }, 1);
    } catch (error) {
      if (error.status === undefined || error.status === 401) return report(error);
      announce(error.message);
      return this.#fail(error.message);
    }
    if (!addEdit(edit, this.#directed)) return this.#fail("This edit is already in the list.");
    this.#target.value = "";
    return undefined;
  }

  /** Show the list for a state; `fresh`: the node changed, so the form begins with it. */
  show(state, fresh) {
    if (fresh) {
      this.#source.value = state.id;
      this.#target.value = "";
      this.#fail(null);
    }
    const items = state.edits.map((edit, i) => {
      const remove = el("button", { type: "button", class: "plain quiet", "aria-label": `Take back: ${sentence(edit)}`, text: "×", on: { click: () => dropEdit(i) } });
      return el("li", { class: edit.op }, el("span", { text: sentence(edit) }), remove);
    });
    this.#list.replaceChildren(...items);
    this.#list.hidden = items.length === 0;
    this.#undo.disabled = !canUndo();
    this.#redo.disabled = !canRedo();
    this.#clear.disabled = items.length === 0;
    if (items.length === 0) this.#result.replaceChildren();
  }

  /** Show an answer: before and after, and whose class changes elsewhere. */
  answer({ before, after, moved, moved_total: total }) {
    const line = (term, one) => el("div", { class: "verdict-line" }, el("span", { class: "faint", text: term }), classLabel(one.predicted), el("span", { class: "number", text: percent(one.confidence) }));
    const elsewhere = total === 0
      ? el("p", { class: "faint", text: "No other node changes its class." })
      : el(
          "details",
          {},
          el("summary", { text: `${plural(total, "other node changes its class", "other nodes change their class")}` }),
          el("ul", { class: "moved" }, moved.map((node) => el("li", {}, nodeLink(node, 50), el("span", { class: "faint", text: ` ${called(node.before)} → ${called(node.predicted)}` })))),
          total > moved.length ? el("p", { class: "faint", text: `and ${count(total - moved.length)} more` }) : null,
        );
    put(this.#result, line("before", before), line("after", after), elsewhere);
  }
}
