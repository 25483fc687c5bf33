// Requests to the server: the token, errors as sentences, patience where the server asks for it.

const BASE = new URL("api/v1/", document.baseURI);
const KEY = "pprop-token";
const PATIENCE = 4;

/** An answer that says no; `message` is the server's sentence. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** No answer at all. */
export class Unreachable extends Error {}

let token = null;
try {
  token = sessionStorage.getItem(KEY);
} catch {
  // Without storage the token lasts as long as the page.
}

export function setToken(text) {
  token = text;
  try {
    sessionStorage.setItem(KEY, text);
  } catch {
    // See above.
  }
}

export const hasToken = () => token !== null;

/** Take a token out of the address, so that it is neither shown nor shared with a link. */
export function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  if (!fragment.has("token")) return;
  setToken(fragment.get("token"));
  fragment.delete("token");
  const rest = fragment.toString();
  history.replaceState(history.state, "", rest ? `#${rest}` : location.pathname + location.search);
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

async function answer(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable("The server does not answer.");
  }
}

async function request(path, { params = {}, body, signal } = {}) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { headers, signal, method: body ? "POST" : "GET" };
  if (body) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  for (let attempt = 1; ; attempt += 1) {
    const response = await answer(url, options);
    if (response.ok) return response.json();
    const busy = response.status === 429 || response.status === 503;
    if (busy && attempt < PATIENCE) {
      const seconds = Number(response.headers.get("Retry-After")) || 0.25 * attempt;
      await pause(Math.min(seconds, 5), signal);
      continue;
    }
    const told = await response.json().catch(() => ({}));
    throw new ApiError(response.status, told.error ?? "error", told.message ?? `The server answered ${response.status}.`);
  }
}

const settings = ({ alpha, steps }) => ({ ...(alpha !== null && { alpha }), ...(steps !== null && { steps }) });
const ends = ({ source, target }) => ({ source, target });

export const model = () => request("model");
export const diagnostics = (signal) => request("diagnostics", { signal });
export const search = (params, signal) => request("search", { params, signal });

export async function predict(id, state, signal) {
  const { predictions } = await request("predict", { body: { ids: [id], ...settings(state) }, signal });
  return predictions[0];
}

/** Where a logit comes from; of a graph with edits, what a what-if says. */
export async function explain(state, k, signal) {
  if (state.edits.length > 0) return (await whatIf(state, k, signal)).explanation;
  return request("explain", { params: { id: state.id, k, class: state.cls, ...settings(state) }, signal });
}

export const neighbourhood = (state, signal) =>
  request("neighbourhood", { params: { id: state.id, size: state.size, ...settings(state) }, signal });

let imagined = null;

/** A prediction with edits and its `k` largest contributors. Whoever asks the same in the meantime gets the same answer. */
export function whatIf(state, k, signal) {
  const remove = state.edits.filter((edit) => edit.op === "cut").map(ends);
  const add = state.edits.filter((edit) => edit.op === "add").map(ends);
  const body = { id: state.id, remove, add, k, ...(state.cls !== null && { class: state.cls }), ...settings(state) };
  const key = JSON.stringify(body);
  if (imagined?.key === key) return imagined.answer;
  const asked = { key, answer: request("what-if", { body, signal }) };
  const end = () => imagined === asked && (imagined = null);
  asked.answer.then(end, end);
  imagined = asked;
  return asked.answer;
}

/** Whether the server is there again. */
export async function alive() {
  try {
    return (await fetch(new URL("healthz", document.baseURI), { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}
