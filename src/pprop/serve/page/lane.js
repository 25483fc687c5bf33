// One question at a time, the newest first. While a slider moves, an answer is drawn as soon as it comes and the next
// question is the newest value; what was asked about another node is broken off.

export class Lane {
  #ask;
  #done;
  #failed;
  #running = null;
  #next = null;
  #shown = null;

  /** `ask(state, signal)` gives a promise; `done(answer, state)` draws it; `failed(error, state)` reports. */
  constructor(ask, done, failed) {
    this.#ask = ask;
    this.#done = done;
    this.#failed = failed;
  }

  get busy() {
    return this.#running !== null;
  }

  /** Make the next request a new one even if nothing changed. */
  forget() {
    this.#shown = null;
  }

  want(key, state) {
    if (this.#running) {
      if (this.#running.key === key && !this.#running.controller.signal.aborted) {
        this.#next = null;
        return;
      }
      this.#next = { key, state };
      if (this.#running.state.id !== state.id) this.#running.controller.abort();
      return;
    }
    if (key !== this.#shown) this.#start({ key, state });
  }

  async #start({ key, state }) {
    const controller = new AbortController();
    this.#running = { key, state, controller };
    try {
      const answer = await this.#ask(state, controller.signal);
      if (!controller.signal.aborted) {
        this.#shown = key;
        this.#done(answer, state);
      }
    } catch (error) {
      if (!controller.signal.aborted) {
        this.#shown = null;
        if (!this.#next) this.#failed(error, state);
      }
    } finally {
      this.#running = null;
      const next = this.#next;
      this.#next = null;
      if (next && next.key !== this.#shown) this.#start(next);
    }
  }
}
