// What the page shows, as one object, and the address that restores it. Walking on makes an entry in the browser's
// history; a slider or an edit changes the entry that is there.

const EMPTY = { view: "node", id: null, alpha: null, steps: null, cls: null, size: 40, edits: [], filter: {} };
const FILTERS = ["q", "label", "predicted", "role", "distance", "confidence_from", "confidence_to", "order", "offset"];
const TRAIL = 12;
const PAUSE = 400; // milliseconds between two changes of the address
const listeners = [];
let state = { ...EMPTY };
let trail = [];
let dirty = false;
let timer = 0;
let written = 0;

export const current = () => state;
export const walked = () => trail;
export const listen = (listener) => listeners.push(listener);

const escape = (text) => encodeURIComponent(text).replaceAll("~", "%7E");

function number(text, low, high) {
  const value = Number(text);
  return text !== null && text !== "" && Number.isFinite(value) && value >= low && value <= high ? value : null;
}

function readEdit(text) {
  try {
    const [op, source, target, ...more] = text.split("~").map(decodeURIComponent);
    return (op === "cut" || op === "add") && source && target && more.length === 0 ? [{ op, source, target }] : [];
  } catch {
    return [];
  }
}

/** The state that a fragment describes; what makes no sense in it is left out. */
export function parse(fragment) {
  const params = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = ["node", "model", "nodes"].includes(params.get("view")) ? params.get("view") : "node";
  const alpha = number(params.get("alpha"), 1e-6, 1);
  const steps = number(params.get("steps"), 1, 200);
  const filter = {};
  for (const name of FILTERS) if (params.has(name)) filter[name] = params.get(name);
  return {
    ...EMPTY,
    view,
    id: params.get("node"),
    alpha,
    steps: steps === null ? null : Math.round(steps),
    cls: params.get("class"),
    size: Math.round(number(params.get("size"), 1, 200) ?? EMPTY.size),
    edits: params.getAll("edit").flatMap(readEdit),
    filter,
  };
}

/** The fragment that describes a state; what is as always is left out. */
export function fragment(of) {
  const params = new URLSearchParams();
  if (of.view !== "node") params.set("view", of.view);
  if (of.id !== null) params.set("node", of.id);
  if (of.alpha !== null) params.set("alpha", of.alpha);
  if (of.steps !== null) params.set("steps", of.steps);
  if (of.cls !== null) params.set("class", of.cls);
  if (of.size !== EMPTY.size) params.set("size", of.size);
  for (const { op, source, target } of of.edits) params.append("edit", [op, source, target].map(escape).join("~"));
  if (of.view === "nodes") for (const [name, value] of Object.entries(of.filter)) params.set(name, value);
  return `#${params}`;
}

function tell(previous) {
  for (const listener of listeners) listener(state, previous);
}

/** Change the state. `push`: as a new entry of the history. */
export function go(patch, { push = false } = {}) {
  if (push) flush();
  const previous = state;
  const moved = "id" in patch && patch.id !== null && patch.id !== state.id;
  state = { ...state, ...patch };
  if (moved) {
    trail = [...trail, patch.id].slice(-TRAIL);
    if (!("cls" in patch)) state.cls = null;
  }
  if (!push) write();
  else if (fragment(state) !== location.hash) history.pushState({ trail }, "", fragment(state));
  tell(previous);
}

/** Bring the address up to date now. */
export function flush() {
  clearTimeout(timer);
  timer = 0;
  if (!dirty) return;
  dirty = false;
  written = performance.now();
  history.replaceState({ trail }, "", fragment(state));
}

/** Bring the address up to date soon: browsers refuse many changes of it in a short time, as a slider would make them. */
function write() {
  dirty = true;
  if (timer) return;
  timer = setTimeout(flush, Math.max(0, PAUSE - (performance.now() - written)));
}

/** Walk to a node. */
export const walk = (id) => go({ view: "node", id: String(id) }, { push: true });

/** The address of a state that differs from the present one by a patch: for links. */
export const linkTo = (patch) => fragment({ ...state, ...patch });

function restore(event) {
  clearTimeout(timer);
  timer = 0;
  dirty = false;
  const previous = state;
  state = parse(location.hash);
  if (event?.state?.trail) trail = event.state.trail;
  else if (state.id !== null && trail.at(-1) !== state.id) trail = [...trail, state.id].slice(-TRAIL);
  if (state.id === null) state.id = previous.id;
  tell(previous);
}

/** Begin with the address, or with the node that the model suggests. */
export function begin(example) {
  state = parse(location.hash);
  if (state.id === null) state.id = String(example);
  trail = history.state?.trail ?? [state.id];
  history.replaceState({ trail }, "", fragment(state));
  addEventListener("popstate", restore);
  addEventListener("pagehide", flush);
  tell(EMPTY);
}
