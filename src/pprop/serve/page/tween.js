// Positions that glide from where they are to where they belong, all in one frame loop.

import { calm } from "./dom.js";

const TIME = 420;
const ease = (t) => 1 - (1 - t) ** 3;
const FIELDS = ["x", "y", "r"];

export class Tween {
  #now = new Map();
  #from = new Map();
  #to = new Map();
  #start = 0;
  #frame = 0;
  #draw;

  constructor(draw) {
    this.#draw = draw;
  }

  get now() {
    return this.#now;
  }

  /** Glide to new places. What was not there before begins at its place. */
  to(places, { jump = false } = {}) {
    cancelAnimationFrame(this.#frame);
    this.#to = places;
    this.#from = new Map([...places].map(([id, spot]) => [id, this.#now.get(id) ?? spot]));
    if (jump || calm() || document.hidden) return this.#set(1);
    this.#start = performance.now();
    this.#set(0);
    this.#step();
  }

  #step() {
    this.#frame = requestAnimationFrame((time) => {
      const t = Math.min(1, Math.max(0, (time - this.#start) / TIME));
      this.#set(ease(t));
      if (t < 1) this.#step();
    });
  }

  #set(t) {
    const now = new Map();
    for (const [id, end] of this.#to) {
      const start = this.#from.get(id);
      now.set(id, Object.fromEntries(FIELDS.map((field) => [field, start[field] + t * (end[field] - start[field])])));
    }
    this.#now = now;
    this.#draw(now);
  }
}
