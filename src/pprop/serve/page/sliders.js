// Alpha and steps: what the propagation would do with other values. The network stays as it was trained.

import { el, write } from "./dom.js";
import { go } from "./state.js";

const FINE = [...Array(20).keys()].map((i) => i + 1);
const COARSE = [25, 30, 40, 50, 75, 100, 150, 200];
const EXACT = null;

/** The steps that the slider offers: those of the model among them; exact, where that is what the model does, at the end. */
function offered(trained) {
  const values = new Set([...FINE, ...COARSE, ...(trained === null ? [] : [trained])]);
  const sorted = [...values].sort((a, b) => a - b);
  return trained === null ? [...sorted, EXACT] : sorted;
}

const stepsText = (steps) => (steps === EXACT ? "exact" : String(steps));

export class Sliders {
  #model;
  #steps;
  #alpha = el("input", { type: "range", id: "alpha", min: "0.01", max: "1", step: "0.01" });
  #index;
  #alphaOut = el("output", { id: "alpha-value", for: "alpha" });
  #stepsOut = el("output", { id: "steps-value", for: "steps" });
  #note = el("p", { class: "note", id: "trained-note" });
  #reset = el("button", { type: "button", class: "plain", id: "reset", text: "Back to the trained values" });

  constructor(host, model) {
    this.#model = { ...model, alpha: model.alpha ?? 1 };
    this.#steps = offered(model.steps);
    this.#index = el("input", { type: "range", id: "steps", min: "0", max: String(this.#steps.length - 1), step: "1" });
    const marks = (input, at) => {
      const mark = el("span", { class: "trained", "aria-hidden": "true" });
      mark.style.setProperty("--p", at);
      return el("span", { class: "slide" }, mark, input);
    };
    const alphaAt = (this.#model.alpha - 0.01) / 0.99;
    const stepsAt = this.#steps.indexOf(model.steps) / (this.#steps.length - 1);
    host.append(
      el("div", { class: "control" }, el("label", { for: "alpha" }, "Alpha ", el("span", { class: "faint", text: "weight of the network's own prediction" })), this.#alphaOut, marks(this.#alpha, alphaAt)),
      el("div", { class: "control" }, el("label", { for: "steps" }, "Steps ", el("span", { class: "faint", text: "edges that a prediction can travel" })), this.#stepsOut, marks(this.#index, stepsAt)),
      el("div", { class: "note-line" }, this.#note, this.#reset),
    );
    this.#alpha.addEventListener("input", () => this.#change({ alpha: Number(this.#alpha.value) }));
    this.#index.addEventListener("input", () => this.#change({ steps: this.#steps[Number(this.#index.value)] }));
    this.#reset.addEventListener("click", () => go({ alpha: null, steps: null }));
  }

  /** The model's own value means: as trained. */
  #change(patch) {
    if (patch.alpha === this.#model.alpha) patch.alpha = null;
    if (patch.steps === this.#model.steps) patch.steps = null;
    go(patch);
  }

  #values(state) {
    const alpha = state.alpha ?? this.#model.alpha;
    const steps = state.steps ?? this.#model.steps;
    write(this.#alphaOut, alpha.toFixed(2).replace(/0$/, "").padEnd(3, "0"));
    write(this.#stepsOut, stepsText(steps));
    this.#alpha.setAttribute("aria-valuetext", `${alpha}`);
    this.#index.setAttribute("aria-valuetext", `${stepsText(steps)} steps`);
    const trained = `alpha ${this.#model.alpha} and ${this.#model.steps === null ? "the exact solution" : `${this.#model.steps} steps`}`;
    const same = state.alpha === null && state.steps === null;
    write(this.#note, same ? `As the network was trained: ${trained}.` : `The network was trained at ${trained}; here its outputs are propagated otherwise.`);
    this.#note.classList.toggle("differs", !same);
    this.#reset.classList.toggle("away", same);
    this.#reset.disabled = same;
  }

  show(state) {
    const alpha = String(state.alpha ?? this.#model.alpha);
    const steps = state.steps ?? this.#model.steps;
    if (steps !== null && !this.#steps.includes(steps)) this.#steps.splice(this.#steps.findIndex((one) => one === null || one > steps), 0, steps);
    this.#index.max = String(this.#steps.length - 1);
    const index = String(this.#steps.indexOf(steps));
    if (this.#alpha.value !== alpha) this.#alpha.value = alpha;
    if (this.#index.value !== index) this.#index.value = index;
    this.#values(state);
  }
}
