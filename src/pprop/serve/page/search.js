// The search field: a combobox after the ARIA pattern. Options are nodes, and classes whose name matches.

import { search } from "./api.js";
import { byId, el } from "./dom.js";
import { count, percent, shorten, title } from "./format.js";
import { called, classNames, swatch } from "./palette.js";
import { go, walk } from "./state.js";

const WAIT = 90;
const MOST = 8;

export function makeSearch(report) {
  const input = el("input", {
    type: "search", id: "search-input", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "Find a node or a class",
    "aria-label": "Find a node or a class", "aria-expanded": "false", "aria-controls": "search-list", "aria-autocomplete": "list",
    "aria-keyshortcuts": "/",
  });
  const list = el("ul", { id: "search-list", role: "listbox", "aria-label": "Results", hidden: true });
  const sign = el("kbd", { "aria-hidden": "true", text: "/" });
  byId("search").append(input, sign, list);
  let options = [];
  let active = -1;
  let controller = null;
  let timer = 0;
  let asked = null;

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  }

  function choose(option) {
    close();
    clearTimeout(timer);
    controller?.abort();
    asked = null;
    input.value = "";
    if (option.cls !== undefined) go({ view: "nodes", filter: { predicted: option.cls } }, { push: true });
    else walk(option.node.id);
    byId("main").focus({ preventScroll: true });
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === index)));
    if (index < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", `option-${index}`);
    list.children[index].scrollIntoView({ block: "nearest" });
  }

  function show(found, query) {
    const classes = classNames().filter((name) => name.toLowerCase().includes(query.toLowerCase())).slice(0, 3);
    options = [...found.nodes.map((node) => ({ node })), ...classes.map((cls) => ({ cls }))];
    const items = options.map((option, i) => {
      const item = el("li", { role: "option", id: `option-${i}`, "aria-selected": "false" });
      if (option.cls !== undefined) item.append(swatch(option.cls), el("span", { class: "grow", text: `All nodes predicted ${option.cls}` }));
      else {
        const { node } = option;
        const name = title(node);
        item.append(
          swatch(node.predicted),
          el("span", { class: "grow" }, el("span", { text: shorten(name, 80) }), name === String(node.id) ? null : el("span", { class: "faint", text: ` ${node.id}` })),
          el("span", { class: "faint number", text: `${shorten(called(node.predicted), 24)} ${percent(node.confidence, 0)}` }),
        );
      }
      item.addEventListener("pointerdown", (event) => event.preventDefault());
      item.addEventListener("click", () => choose(option));
      return item;
    });
    if (options.length === 0) items.push(el("li", { class: "none", text: "No node matches." }));
    else if (found.total > found.nodes.length) items.push(el("li", { class: "none", text: `${count(found.total)} nodes match; type more to narrow it down.` }));
    list.replaceChildren(...items);
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(options.length > 0 ? 0 : -1);
  }

  async function ask() {
    const query = input.value.trim();
    if (query === asked) return;
    controller?.abort();
    if (!query) {
      asked = null;
      return close();
    }
    controller = new AbortController();
    const { signal } = controller;
    try {
      const found = await search({ q: query, limit: MOST }, signal);
      if (signal.aborted) return;
      asked = query;
      show(found, query);
    } catch (error) {
      if (!signal.aborted) report(error);
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  });
  input.addEventListener("keydown", async (event) => {
    const open = !list.hidden && options.length > 0;
    if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) return asked ? ((list.hidden = false), mark(0)) : ask();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark((active + step + options.length) % options.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(timer);
      if (input.value.trim() !== asked) await ask();
      if (options.length > 0 && input.value.trim() === asked && asked) choose(options[Math.max(0, active)]);
    }
  });
  input.addEventListener("blur", close);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}
