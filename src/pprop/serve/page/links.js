// Links inside the page: real addresses (to copy, to open in a new tab) that a plain click follows without loading anew.

import { el } from "./dom.js";
import { shorten, title } from "./format.js";
import { go, linkTo } from "./state.js";

/** A link that changes the state by a patch, as a new entry of the history. */
export function stateLink(patch, props, ...children) {
  const link = el("a", { href: linkTo(patch), ...props }, ...children);
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go(patch, { push: true });
  });
  return link;
}

/** A link to a node: its name with its id, or its id alone. */
export function nodeLink(node, most = 90) {
  const id = String(node.id);
  const name = title(node);
  const parts = name === id ? [el("span", { class: "node-id", text: shorten(id, most) })] : [
    el("span", { class: "node-name", text: shorten(name, most) }),
    " ",
    el("span", { class: "node-id faint", text: shorten(id, 40) }),
  ];
  return stateLink({ view: "node", id, cls: null }, { class: "node-link", title: name.length > most ? name : null }, parts);
}

/** A link to a list of nodes. */
export const listLink = (filter, props, ...children) => stateLink({ view: "nodes", filter }, props, ...children);
