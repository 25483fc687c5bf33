// The view of one node: what it was predicted, from where, and what would change it.

import * as api from "./api.js";
import { Bars } from "./bars.js";
import { contributorsTable, showContributors } from "./contributors.js";
import { el, put, write } from "./dom.js";
import { Drawing } from "./drawing.js";
import { saveCsv, savePng } from "./exports.js";
import { percent, plural, shorten, title } from "./format.js";
import { Lane } from "./lane.js";
import { stateLink } from "./links.js";
import { announce, clearNotice, progress, report } from "./notices.js";
import { called, classLabel, classNames } from "./palette.js";
import { isUsed } from "./roles.js";
import { Sliders } from "./sliders.js";
import { current, flush, go, walk, walked } from "./state.js";
import { hideTooltip } from "./tooltip.js";
import { WhatIf } from "./whatif.js";
import { skeleton } from "./node-skeleton.js";

const CONTRIBUTORS = 12;
const MORE = 50;
const REST = 120; // milliseconds for which a slider lies still before the neighbourhood is drawn anew

export class NodeView {
  #parts;
  #bars;
  #sliders;
  #whatIf;
  #drawing;
  #table = contributorsTable();
  #view = null;
  #shown = null;
  #base = null;
  #explanation = null;
  #k = CONTRIBUTORS;
  #explains;
  #threshold;
  #others = new Map();
  #edge = null;
  #later = 0;
  #result;
  #trained;
  #explained;
  #drawn;

  constructor(host, model) {
    this.#parts = skeleton(host, model);
    this.#explains = model.explains;
    this.#threshold = model.threshold;
    const parts = this.#parts;
    parts.table.append(this.#table);
    this.#bars = new Bars(parts.bars, (name) => go({ cls: name }));
    this.#sliders = new Sliders(parts.sliders, model);
    this.#whatIf = new WhatIf(parts.whatIf, model.directed);
    this.#drawing = new Drawing(parts.drawing, { walk, edge: (edge) => this.#choose(edge), cut: (edge) => this.#edit(edge) }, model.directed);
    const lane = (name, ask, done) => new Lane(
      (state, signal) => progress(ask(state, signal)),
      (answer, state) => (clearNotice(name), done(answer, state)),
      (error, state) => this.#fail(error, state, name),
    );
    this.#trained = lane("trained", (state, signal) => api.predict(state.id, { alpha: null, steps: null }, signal), (answer) => this.#take(() => (this.#base = answer)));
    this.#result = lane("result", (state, signal) => this.#predict(state, signal), (answer, state) => this.#predicted(answer, state));
    this.#explained = lane("explained", (state, signal) => api.explain(state, this.#k, signal), (answer, state) => this.#explain(answer, state));
    this.#drawn = lane("drawn", (state, signal) => this.#neighbourhood(state, signal), (answer) => this.#draw(answer));
    this.#wire(model);
  }

  #wire(model) {
    const parts = this.#parts;
    parts.png.addEventListener("click", () => this.#png().catch(report));
    parts.csv.addEventListener("click", () => this.#csv(model));
    parts.link.addEventListener("click", () => this.#copy());
    parts.back.addEventListener("click", () => history.back());
    parts.size.addEventListener("change", () => go({ size: Number(parts.size.value) }));
    parts.cls.addEventListener("change", () => go({ cls: parts.cls.value === "" ? null : parts.cls.value }));
    parts.more.addEventListener("click", () => {
      this.#k = this.#k === CONTRIBUTORS ? MORE : CONTRIBUTORS;
      this.#explained.forget();
      this.show(current(), current());
    });
    parts.edgeCut.addEventListener("click", () => this.#edge && this.#edit(this.#edge));
    parts.edgeClose.addEventListener("click", () => this.#drawing.select(null));
  }

  /** Ask for what a state needs; what is on the screen stays until the answers come. */
  show(state, previous) {
    const setting = JSON.stringify([state.id, state.alpha, state.steps]);
    this.#sliders.show(state);
    this.#whatIf.show(state, state.id !== previous.id || previous === state || previous.id === null);
    if (state.id !== this.#shown?.key) hideTooltip();
    this.#crumbs(state);
    this.#showSize(String(state.size));
    this.#trained.want(state.id, state);
    this.#result.want(setting + JSON.stringify(state.edits), state);
    // While a slider moves the prediction comes first; the table follows it, and the drawing when the slider lies still.
    const slides = state.id === previous.id && this.#shown?.key === state.id && (state.alpha !== previous.alpha || state.steps !== previous.steps);
    if (!slides) this.#rest(state);
    if (this.#view && String(this.#view.centre) === state.id && state.edits !== previous.edits) this.#redraw();
  }

  /** A link may ask for a number of nodes that is not offered. */
  #showSize(size) {
    const choice = this.#parts.size;
    if (![...choice.options].some((one) => one.value === size)) choice.append(el("option", { value: size, text: `${size} nodes` }));
    if (choice.value !== size) choice.value = size;
  }

  #rest(state, pause = 0) {
    clearTimeout(this.#later);
    if (this.#explains === false) return;
    const setting = JSON.stringify([state.id, state.alpha, state.steps]);
    this.#explained.want(setting + JSON.stringify([state.cls, this.#k, state.edits]), state);
    const draw = () => this.#drawn.want(setting + state.size, state);
    if (pause > 0) this.#later = setTimeout(draw, pause);
    else draw();
  }

  /** Ask for everything anew. */
  forget() {
    for (const lane of [this.#trained, this.#result, this.#explained, this.#drawn]) lane.forget();
  }

  #fail(error, state, source) {
    const refused = error instanceof api.ApiError && [404, 409, 422].includes(error.status);
    if (refused && source === "result" && state.edits.length > 0) {
      if (current().edits === state.edits) go({ edits: [] }); // a link may be older than the graph
      report(new api.ApiError(error.status, error.code, `${error.message} The edits were taken back.`), "edits");
      return;
    }
    if (error instanceof api.ApiError && error.status === 404 && this.#shown?.key !== state.id) {
      this.#parts.root.classList.add("missing");
      document.title = "pprop explorer";
    }
    report(error, source);
  }

  async #predict(state, signal) {
    if (state.edits.length === 0) return { after: await api.predict(state.id, state, signal) };
    return api.whatIf({ ...state, cls: null }, this.#k, signal); // a wrong class in a link must not hide the prediction
  }

  #take(change) {
    change();
    this.#paint();
  }

  #predicted(answer, state) {
    const before = this.#shown;
    this.#shown = { key: state.id, ...answer.after, state };
    this.#parts.root.classList.remove("missing");
    this.#parts.root.classList.add("ready");
    if (answer.before) this.#whatIf.answer(answer);
    this.#paint();
    if (current().view === "node" && current().id === state.id) this.#rest(current(), REST);
    const now = `${answer.after.predicted}, ${percent(answer.after.confidence, 0)}`;
    if (before && before.key !== state.id) announce(`Node ${state.id}: predicted ${now}.`);
    else if (before && before.predicted !== answer.after.predicted) announce(`The prediction is now ${now}; it was ${before.predicted}.`);
  }

  #paint() {
    const shown = this.#shown;
    if (!shown) return;
    const base = this.#base && String(this.#base.id) === shown.key ? this.#base : null;
    const { state } = shown;
    const differs = state.alpha !== null || state.steps !== null || state.edits.length > 0;
    this.#bars.show(shown, differs ? base : null, current().cls ?? shown.predicted);
    this.#heading(shown, differs ? base : null);
  }

  #heading(node, base) {
    const parts = this.#parts;
    const name = title(node);
    const named = name !== String(node.id);
    write(parts.title, named ? name : `Node ${name}`);
    document.title = `${shorten(name, 60)} · pprop explorer`;
    const distance = node.role === "training" ? "a training node" : node.distance === null ? "no training node is reachable" : `${plural(node.distance, "step")} from a training node`;
    const role = node.role === "validation" || node.role === "test" ? `a ${node.role} node` : null;
    write(parts.sub, [named ? `Node ${node.id}` : null, plural(node.degree, "neighbour"), role, distance].filter(Boolean).join(" · "));
    const network = node.network ? Math.max(...node.network) : null;
    const alone = network === null ? null : classNames()[node.network.indexOf(network)];
    put(parts.verdict, classLabel(node.predicted), el("span", { class: "number", text: percent(node.confidence) }));
    const label = node.label === null ? "It has no label." : node.label === node.predicted ? "Its label is the same." : `Its label is ${called(node.label)}.`;
    const top = Math.max(...node.probabilities);
    const decided = this.#threshold !== null && top > node.confidence; // else the most probable class was predicted
    const decision = decided ? ` The threshold decided: a node is predicted as ${called(this.#threshold.positive)} from a probability of ${Number(this.#threshold.probability.toPrecision(3))} on.` : "";
    const change = alone === null ? "" : decided
      ? `The network alone predicts ${called(alone)}, at ${percent(network)}.`
      : alone === node.predicted
      ? `The network alone predicts ${called(alone)}, too, at ${percent(network)}.`
      : `The network alone predicts ${called(alone)}, at ${percent(network)}; the neighbourhood changed that.`;
    const trained = base && base.predicted !== node.predicted ? ` As trained and without edits it is ${called(base.predicted)}.` : "";
    parts.root.classList.toggle("no-network", alone === null);
    write(parts.adds, `Every node adds its weight times ${alone === null ? "what it starts with" : "its own network output"}. The lines add up to the logit, exactly.`);
    write(parts.story, `${label}${decision} ${change}${trained}`);
    parts.text.hidden = !node.text;
    write(parts.textBody, node.text ?? "");
  }

  #explain(answer, state) {
    this.#explanation = answer;
    showContributors(this.#table, answer, state.id);
    if (this.#parts.cls.value !== answer.class) this.#parts.cls.value = answer.class;
    this.#parts.more.hidden = this.#k === CONTRIBUTORS && answer.rest.nodes === 0;
    write(this.#parts.more, this.#k === CONTRIBUTORS ? `Show ${MORE}` : "Show fewer");
    this.#parts.edited.hidden = state.edits.length === 0;
  }

  async #neighbourhood(state, signal) {
    const view = await api.neighbourhood(state, signal);
    await this.#fetchOthers(state, view, signal);
    return view;
  }

  /** Nodes that edits name and the drawing lacks. */
  async #fetchOthers(state, view, signal) {
    const known = new Set(view.nodes.map((node) => String(node.id)));
    const lacking = state.edits.filter((edit) => edit.op === "add").flatMap((edit) => [edit.source, edit.target]);
    for (const id of new Set(lacking)) {
      if (!known.has(id) && !this.#others.has(id)) this.#others.set(id, await api.predict(id, { alpha: null, steps: null }, signal));
    }
  }

  #draw(view) {
    this.#view = view;
    this.#parts.drawing.classList.remove("empty");
    this.#present(view);
  }

  #present(view) {
    const { edits } = current();
    this.#drawing.show(view, edits, this.#others);
    const counts = { training: 0, validation: 0, others: 0 };
    for (const node of view.nodes) counts[isUsed(node) ? node.role : "others"] += 1;
    for (const [role, drawn] of Object.entries(counts)) write(this.#parts.roles[role], `(${drawn})`);
    const before = edits.length === 0 ? "" : " without your edits";
    write(this.#parts.caption, view.nodes.length === 1 ? `It has no neighbours${before}.` : `The ${view.nodes.length} nodes that weigh most in this prediction${before}, and the edges among them.`);
  }

  #redraw() {
    const state = current();
    const view = this.#view;
    this.#fetchOthers(state, view).then(() => {
      if (this.#view === view) this.#present(view);
    }, report);
  }

  #choose(edge) {
    this.#edge = edge;
    this.#parts.edgeBar.hidden = edge === null;
    if (!edge) return;
    const cut = edge.kind === "cut";
    write(this.#parts.edgeText, `${edge.source} – ${edge.target}${edge.kind ? "" : `, weight ${Number(edge.weight.toPrecision(3))}`}`);
    write(this.#parts.edgeCut, cut ? "Put back" : "Cut this edge");
    this.#whatIf.fill(edge);
  }

  #edit(edge) {
    this.#whatIf.attempt({ op: edge.kind === "cut" ? "add" : "cut", source: String(edge.source), target: String(edge.target) });
    this.#drawing.select(null);
  }

  #crumbs(state) {
    const trail = walked();
    const parts = this.#parts;
    parts.back.disabled = trail.length < 2;
    const items = trail.slice(-6).map((id) => el("li", {}, id === state.id
      ? el("span", { "aria-current": "page", text: shorten(id, 24) })
      : stateLink({ view: "node", id, cls: null }, {}, shorten(id, 24))));
    parts.crumbs.replaceChildren(...items);
  }

  async #png() {
    const shown = this.#shown;
    const heading = `${shorten(title(shown), 60)}: ${shown.predicted}, ${percent(shown.confidence)}`;
    await savePng(this.#drawing.element, heading, `pprop-node-${shown.id}`);
    announce("The drawing was saved as PNG.");
  }

  #csv(model) {
    const answer = this.#explanation;
    const alone = this.#shown.network ? model.classes : [];
    const header = ["node", "name", "predicted", "label", "role", "weight", `contribution to ${answer.class}`, ...alone.map((name) => `network ${name}`)];
    const rows = answer.contributors.map((node) => [node.id, node.name, node.predicted, node.label, node.role, node.weight, node.contribution, ...(node.network ?? [])]);
    rows.push([`other ${answer.rest.nodes} nodes`, null, null, null, null, answer.rest.weight, answer.rest.contribution]);
    rows.push(["logit", null, null, null, null, null, answer.logit]);
    saveCsv(`pprop-node-${answer.id}-contributors`, header, rows);
    announce("The contributors were saved as CSV.");
  }

  async #copy() {
    try {
      flush();
      await navigator.clipboard.writeText(location.href);
      write(this.#parts.link, "Link copied");
      announce("The link was copied.");
    } catch {
      write(this.#parts.link, "Copy it from the address bar");
    }
    setTimeout(() => write(this.#parts.link, "Copy link"), 2500);
  }
}
