// The ego graph: nodes coloured by predicted class and sized by influence, training and validation nodes ringed, edges as wide as their
// weight. One tab stop; arrow keys move between nodes, Enter walks on, Delete cuts the edge to the centre.

import { svg } from "./dom.js";
import { shorten, title } from "./format.js";
import { neighbourInDirection, place, placeLabels } from "./layout.js";
import { colour, shape, shapePath } from "./palette.js";
import { describe, hideTooltip, showTooltip } from "./tooltip.js";
import { Tween } from "./tween.js";

const LABELS = 9;
export const edgeKey = (a, b) => JSON.stringify([String(a), String(b)]);

/** Where a node that the server did not place goes: outside, in the widest gap between the others. */
function freeSpot(nodes) {
  const angles = nodes.filter((node) => node.x || node.y).map((node) => Math.atan2(node.y, node.x)).sort((a, b) => a - b);
  if (angles.length === 0) return { x: 0.8, y: -0.6 };
  let [widest, at] = [-1, 0];
  angles.forEach((angle, i) => {
    const next = i + 1 < angles.length ? angles[i + 1] : angles[0] + 2 * Math.PI;
    if (next - angle > widest) [widest, at] = [next - angle, angle + (next - angle) / 2];
  });
  return { x: 0.85 * Math.cos(at), y: 0.85 * Math.sin(at) };
}

export class Drawing {
  #host;
  #actions;
  #canvas;
  #edgeLayer = svg("g", { class: "edges" });
  #nodeLayer = svg("g", { class: "nodes" });
  #labelLayer = svg("g", { class: "labels", "aria-hidden": "true" });
  #nodes = new Map();
  #edges = new Map();
  #drawn = null;
  #selected = null;
  #focused = null;
  #centre = null;
  #tween = new Tween((spots) => this.#move(spots));
  #places = new Map();

  /** `actions`: walk(id), edge(edge or null), cut(id). */
  constructor(host, actions, directed) {
    this.#host = host;
    this.#actions = actions;
    this.#canvas = svg("svg", { class: directed ? "drawing directed" : "drawing", role: "group", "aria-label": "Neighbourhood" });
    const arrow = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
    arrow.append(svg("path", { class: "arrow", d: "M0 0 8 4 0 8Z" }));
    this.#canvas.append(svg("defs", {}, arrow), this.#edgeLayer, this.#nodeLayer, this.#labelLayer);
    this.directed = directed;
    host.append(this.#canvas);
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
    this.#canvas.addEventListener("click", (event) => event.target === this.#canvas && this.select(null));
    new ResizeObserver(() => this.#drawn && this.#arrange(true)).observe(host);
  }

  get element() {
    return this.#canvas;
  }

  /** Draw a neighbourhood with what-if edits; `others` has the nodes of edits that are outside it. */
  show(view, edits, others) {
    const centre = String(view.centre);
    const walked = this.#centre !== null && this.#centre !== centre;
    const hadFocus = this.#canvas.contains(document.activeElement);
    this.#centre = centre;
    const nodes = view.nodes.map((node) => ({ ...node, key: String(node.id) }));
    const known = new Set(nodes.map((node) => node.key));
    for (const edit of edits) {
      for (const end of [edit.source, edit.target]) {
        const other = others.get(end);
        if (known.has(end) || !other || edit.op !== "add") continue;
        nodes.push({ ...other, ...freeSpot(nodes), influence: null, key: end });
        known.add(end);
      }
    }
    this.#drawn = nodes;
    this.#joinEdges(view.edges, edits, known);
    this.#joinNodes(nodes);
    if (walked) this.select(null);
    if (this.#focused === null || !this.#nodes.has(this.#focused) || walked) this.#focused = centre;
    for (const [id, item] of this.#nodes) item.group.setAttribute("tabindex", id === this.#focused ? "0" : "-1");
    if (hadFocus && walked) this.#nodes.get(centre).group.focus({ preventScroll: true });
    this.#canvas.setAttribute("aria-label", `Neighbourhood of ${centre}: ${nodes.length} nodes, ${view.edges.length} edges. Arrow keys move, Enter walks on, Delete cuts the edge to the centre.`);
    this.#arrange(false);
  }

  #arrange(jump) {
    const { width, height } = this.#host.getBoundingClientRect();
    if (width < 40 || height < 40) return;
    this.#canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#canvas.setAttribute("width", width);
    this.#canvas.setAttribute("height", height);
    const placed = this.#drawn.map((node) => ({ ...node, influence: node.influence ?? 0 }));
    this.#places = place(placed, this.#centre, width, height);
    this.#labels(width, height);
    this.#tween.to(this.#places, { jump });
  }

  #joinNodes(nodes) {
    const keep = new Set(nodes.map((node) => node.key));
    for (const [id, item] of this.#nodes) {
      if (keep.has(id)) continue;
      item.group.remove();
      this.#nodes.delete(id);
    }
    for (const node of nodes) {
      let item = this.#nodes.get(node.key);
      if (!item) {
        item = this.#makeNode(node.key);
        this.#nodes.set(node.key, item);
      }
      item.node = node;
      const centre = node.key === this.#centre;
      const wrong = node.label !== null && node.label !== undefined && node.label !== node.predicted;
      const kinds = ["node", colour(node.predicted), centre && "centre", node.role, wrong && "wrong", node.influence === null && "outside"];
      item.group.setAttribute("class", kinds.filter(Boolean).join(" "));
      item.rim.setAttribute("class", wrong ? `rim ${colour(node.label)}` : "rim");
      item.group.setAttribute("aria-label", describe(node, centre));
      if (centre) item.group.setAttribute("aria-current", "true");
      else item.group.removeAttribute("aria-current");
    }
    // The centre last, so that it lies on top.
    this.#nodeLayer.append(this.#nodes.get(this.#centre).group);
  }

  #makeNode(id) {
    const halo = svg("circle", { class: "halo" });
    const ring = svg("circle", { class: "ring" });
    const body = svg("path", { class: "body" });
    const rim = svg("path", { class: "rim" });
    const group = svg("g", { role: "link", tabindex: "-1", "data-node": id }, halo, ring, body, rim);
    const item = { group, halo, ring, body, rim, node: null };
    const show = () => showTooltip(item.node, id === this.#centre, body);
    group.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && (show(), this.#light(id)));
    group.addEventListener("pointerleave", () => (hideTooltip(), this.#light(null)));
    group.addEventListener("focus", () => {
      this.#focused = id;
      if (group.matches(":focus-visible")) show();
      this.#light(id);
    });
    group.addEventListener("blur", () => (hideTooltip(), this.#light(null)));
    group.addEventListener("click", () => {
      hideTooltip();
      if (id === this.#centre) show();
      else this.#actions.walk(id);
    });
    this.#nodeLayer.append(group);
    return item;
  }

  #joinEdges(edges, edits, known) {
    const wanted = new Map(edges.map((edge) => [edgeKey(edge.source, edge.target), { ...edge, kind: "" }]));
    const find = (a, b) => (wanted.has(edgeKey(a, b)) ? edgeKey(a, b) : !this.directed && wanted.has(edgeKey(b, a)) ? edgeKey(b, a) : null);
    for (const { op, source, target } of edits) {
      const there = find(source, target);
      if (op === "cut" && there) wanted.get(there).kind = "cut";
      else if (op === "add" && there) wanted.get(there).kind = "";
      else if (op === "add" && known.has(source) && known.has(target)) wanted.set(edgeKey(source, target), { source, target, weight: 1, kind: "added" });
    }
    const heaviest = Math.max(...edges.map((edge) => edge.weight), 1e-12);
    const even = edges.every((edge) => edge.weight === heaviest);
    for (const [key, item] of this.#edges) {
      if (wanted.has(key)) continue;
      item.group.remove();
      this.#edges.delete(key);
    }
    for (const [key, edge] of wanted) {
      let item = this.#edges.get(key);
      if (!item) {
        const line = svg("line", { class: "line" });
        const hit = svg("line", { class: "hit" });
        const group = svg("g", {}, line, hit);
        item = { group, line, hit };
        hit.addEventListener("click", () => this.select(key));
        this.#edgeLayer.append(group);
        this.#edges.set(key, item);
      }
      Object.assign(item, { edge, from: String(edge.source), to: String(edge.target) });
      item.line.setAttribute("stroke-width", even ? 1.4 : (0.6 + 2.6 * Math.min(1, edge.weight / heaviest)).toFixed(2));
      item.group.dataset.edge = `${item.from} ${item.to}`;
      this.#dress(key);
    }
    if (this.#selected && !this.#edges.has(this.#selected)) this.select(null);
  }

  #dress(key) {
    const { group, edge } = this.#edges.get(key);
    group.setAttribute("class", ["edge", edge.kind, key === this.#selected && "selected"].filter(Boolean).join(" "));
  }

  /** Mark an edge and tell about it; null: none. */
  select(key) {
    const before = this.#selected;
    this.#selected = key;
    for (const one of [before, key]) if (one && this.#edges.has(one)) this.#dress(one);
    if (before !== key) this.#actions.edge(key ? this.#edges.get(key).edge : null);
  }

  /** Whether the drawing shows an edge between two nodes. */
  edgeBetween(a, b) {
    return this.#edges.get(edgeKey(a, b))?.edge ?? (this.directed ? null : (this.#edges.get(edgeKey(b, a))?.edge ?? null));
  }

  #light(id) {
    for (const item of this.#edges.values()) item.group.classList.toggle("lit", id !== null && (item.from === id || item.to === id));
  }

  #labels(width, height) {
    const most = width < 500 ? 14 : 22;
    const wanted = this.#drawn
      .filter((node) => node.influence !== null || this.#drawn.length < 60)
      .sort((a, b) => (b.key === this.#centre) - (a.key === this.#centre) || (b.influence ?? 1) - (a.influence ?? 1))
      .slice(0, LABELS)
      .map((node) => ({ id: node.key, text: shorten(title(node), most) }));
    const spots = placeLabels(wanted, this.#places, width, height);
    const texts = wanted.filter(({ id }) => spots.has(id)).map(({ id, text }) => {
      const { dx, dy, anchor } = spots.get(id);
      return svg("text", { dx, dy, "text-anchor": anchor, class: id === this.#centre ? "centre" : null, data: { of: id }, text });
    });
    this.#labelLayer.replaceChildren(...texts);
  }

  #move(spots) {
    for (const [id, { group, halo, ring, body, rim, node }] of this.#nodes) {
      const { x, y, r } = spots.get(id);
      group.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
      const kind = shape(node.predicted);
      body.setAttribute("d", shapePath(kind, Number(r.toFixed(2))));
      rim.setAttribute("d", shapePath(kind, Number((r + 1).toFixed(2))));
      rim.setAttribute("stroke-width", Math.min(3.5, 1.6 + r / 8).toFixed(2));
      ring.setAttribute("r", (r + 4).toFixed(2));
      halo.setAttribute("r", (Math.max(r, 9) + 7).toFixed(2));
    }
    for (const { from, to, line, hit } of this.#edges.values()) {
      const a = spots.get(from);
      const b = spots.get(to);
      const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
      const cut = this.directed ? Math.min(0.9, (b.r + 3) / length) : 0;
      for (const one of [line, hit]) {
        one.setAttribute("x1", a.x.toFixed(2));
        one.setAttribute("y1", a.y.toFixed(2));
        one.setAttribute("x2", (b.x - (b.x - a.x) * cut).toFixed(2));
        one.setAttribute("y2", (b.y - (b.y - a.y) * cut).toFixed(2));
      }
    }
    for (const text of this.#labelLayer.children) {
      const { x, y } = spots.get(text.dataset.of);
      text.setAttribute("x", x.toFixed(2));
      text.setAttribute("y", y.toFixed(2));
    }
  }

  #key(event) {
    const id = event.target.closest?.("[data-node]")?.dataset.node;
    if (id === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = neighbourInDirection(this.#places, id, event.key);
      if (next === null) return;
      this.#nodes.get(id).group.setAttribute("tabindex", "-1");
      this.#nodes.get(next).group.setAttribute("tabindex", "0");
      this.#nodes.get(next).group.focus({ preventScroll: true });
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (id !== this.#centre) this.#actions.walk(id);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      const edge = id === this.#centre ? null : (this.edgeBetween(this.#centre, id) ?? this.edgeBetween(id, this.#centre));
      if (edge) this.#actions.cut(edge);
    }
  }
}
