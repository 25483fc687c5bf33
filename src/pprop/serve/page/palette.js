// How a class looks: one of eight colours that colour-blind eyes tell apart; beyond eight classes the shape changes too.

import { el, svg } from "./dom.js";

const COLOURS = 8;
const SHAPES = ["circle", "square", "diamond"];
const LONG = 8; // characters that are worth leaving out
let classes = [];
let prefix = "";

/** The long part up to a slash that all of several names begin with, as in "Science/Maths" and "Science/Art"; not of "1/2". */
function shared(names) {
  let common = names[0] ?? "";
  for (const name of names) while (!name.startsWith(common)) common = common.slice(0, -1);
  const cut = common.replace(/[^/>|]*$/, "");
  const worth = names.length > 1 && cut.length >= LONG && /\p{L}/u.test(cut);
  return worth && names.every((name) => name.length > cut.length) ? cut : "";
}

export function setClasses(names) {
  classes = names;
  prefix = shared(names);
}

/** What a class is called where room is short: without what all names begin with. */
export const called = (name) => (prefix && classes.includes(name) ? name.slice(prefix.length) : name);

export const classNames = () => classes;
export const indexOf = (name) => classes.indexOf(name);

/** The CSS class that sets --k to the colour of a class. */
export const colour = (name) => (indexOf(name) < 0 ? "k-none" : `k${indexOf(name) % COLOURS}`);
export const shape = (name) => SHAPES[Math.max(0, Math.floor(indexOf(name) / COLOURS)) % SHAPES.length];

/** The outline of a node of radius r; every shape has about the same area. */
export function shapePath(kind, r) {
  if (kind === "square") {
    const a = r * 0.89;
    return `M${-a} ${-a}H${a}V${a}H${-a}Z`;
  }
  if (kind === "diamond") {
    const a = r * 1.25;
    return `M0 ${-a}L${a} 0 0 ${a} ${-a} 0Z`;
  }
  return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
}

/** A small sign of a class for text and tables. */
export function swatch(name) {
  return svg(
    "svg",
    { class: `swatch ${colour(name)}`, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    svg("path", { d: shapePath(shape(name), 5) }),
  );
}

/** The name of a class, which may break after signs between words; what was left out of it is in its title. */
export function nameOf(name) {
  const words = called(name).split(/(?<=[_/:-])/);
  return el("span", { title: called(name) === name ? null : name }, words.flatMap((word, i) => (i === 0 ? [word] : [el("wbr"), word])));
}

export const classLabel = (name) => el("span", { class: "class-label" }, swatch(name), nameOf(name));
