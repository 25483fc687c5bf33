// Elements from plain descriptions. Text always becomes a text node, so that a name from the data is never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else if (key === "style") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key === "text") element.textContent = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const el = (tag, props = {}, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props = {}, ...children) => fill(document.createElementNS(SVG, tag), props, children);
export const byId = (id) => document.getElementById(id);

/** Put children in place of what is there, unless they look the same: focus and selection stay where they were. */
export function put(parent, ...children) {
  const fresh = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  const old = [...parent.childNodes];
  const same = old.length === fresh.length && old.every((node, i) => fresh[i] instanceof Node && node.isEqualNode(fresh[i]));
  if (!same) parent.replaceChildren(...fresh);
}

/** Write text only where it differs, so that nothing is redrawn or announced twice. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
