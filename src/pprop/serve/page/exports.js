// Files to take along: the drawing with its legend as PNG, tables as CSV.

import { svg } from "./dom.js";
import { textWidth } from "./measure.js";
import { called, classNames, colour, shape, shapePath } from "./palette.js";

const SCALE = 2;
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "paint-order", "marker-end", "visibility", "display"];

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A file name from any text. */
const fileName = (text, ending) => `${text.replace(/[^\p{L}\p{N}_.-]+/gu, "-").replace(/^[-.]+|-+$/g, "").slice(0, 80) || "pprop"}.${ending}`;

/** A field of a CSV file. A text that a spreadsheet would run as a formula gets an apostrophe in front. */
function field(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text))) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function saveCsv(name, header, rows) {
  const text = [header, ...rows].map((row) => row.map(field).join(",")).join("\r\n");
  save(new Blob([`${text}\r\n`], { type: "text/csv;charset=utf-8" }), fileName(name, "csv"));
}

/** Copy the look of elements into attributes, because an image of its own has no style sheet. */
function inline(from, to) {
  const style = getComputedStyle(from);
  for (const name of STYLES) {
    const value = style.getPropertyValue(name);
    if (value) to.setAttribute(name, value);
  }
  [...from.children].forEach((child, i) => inline(child, to.children[i]));
}

function legend(width, top, ink, family) {
  const group = svg("g", { "font-family": family, "font-size": 13, fill: ink });
  let [x, y] = [24, top];
  for (const name of classNames()) {
    const wide = 36 + textWidth(called(name), 13);
    if (x + wide > width - 12) [x, y] = [24, y + 24];
    const probe = document.querySelector(`.swatch.${colour(name)}`);
    const fill = probe ? getComputedStyle(probe).fill : ink;
    group.append(svg("path", { d: shapePath(shape(name), 6), fill, transform: `translate(${x} ${y - 4})` }), svg("text", { x: x + 13, y, text: called(name) }));
    x += wide;
  }
  group.append(svg("text", { x: 18, y: y + 26, "font-size": 12, "fill-opacity": 0.7, text: "Ring: training node. Dashed ring: validation node. Rim: its label is another class. Size: influence." }));
  return { group, bottom: y + 46 };
}

/** Save the drawing as it stands, twice as fine as the screen. */
export async function savePng(drawing, heading, name) {
  const { width, height } = drawing.getBoundingClientRect();
  const body = getComputedStyle(document.body);
  const copy = drawing.cloneNode(true);
  inline(drawing, copy);
  copy.querySelectorAll(".hit, .halo").forEach((extra) => extra.remove());
  const below = legend(width, height + 70, body.color, body.fontFamily);
  const whole = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: below.bottom, viewBox: `0 0 ${width} ${below.bottom}` });
  copy.setAttribute("y", "40");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const caption = svg("text", { x: 24, y: 30, "font-family": body.fontFamily, "font-size": 15, "font-weight": 600, fill: body.color, text: heading });
  whole.append(svg("rect", { width: "100%", height: "100%", fill: body.backgroundColor }), caption, copy, below.group);
  const image = new Image();
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" }));
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * SCALE);
    canvas.height = Math.round(below.bottom * SCALE);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    save(blob, fileName(name, "png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}
