// What the page says about itself: progress, errors, a missing token, a server that went away.

import { alive, ApiError, setToken, Unreachable } from "./api.js";
import { byId, el } from "./dom.js";

const PATIENCE = 180;
let waiting = 0;
let timer = 0;
let again = () => {};
let polling = false;

/** What to do when the server can be asked anew. */
export const onRetry = (callback) => (again = callback);

/** Say something to those who listen to the page. */
export function announce(text) {
  byId("live").textContent = text;
}

/** Show a line of progress while a promise is open, but only if it takes noticeably long. */
export async function progress(promise) {
  waiting += 1;
  if (!timer) timer = setTimeout(() => byId("progress").classList.add("on"), PATIENCE);
  try {
    return await promise;
  } finally {
    waiting -= 1;
    if (waiting === 0) {
      clearTimeout(timer);
      timer = 0;
      byId("progress").classList.remove("on");
    }
  }
}

/** Take a message away; with a source, only one of that source. */
export function clearNotice(source = null) {
  const shown = byId("notices").firstElementChild;
  if (shown && (source === null || shown.dataset.source === source)) shown.remove();
}

function notice(kind, source, ...children) {
  byId("notices").replaceChildren(el("div", { class: `notice ${kind}`, role: "alert", data: { source } }, ...children));
}

function askToken(wrong) {
  const waits = byId("waiting");
  if (waits) waits.hidden = true;
  const input = el("input", { type: "password", id: "token", autocomplete: "off", "aria-label": "Token", placeholder: "Token" });
  const form = el(
    "form",
    { class: "inline" },
    el("p", { text: `${wrong ? "The token is wrong." : "This server needs a token."} Type the one that it was started with.` }),
    input,
    el("button", { type: "submit", class: "plain strong", text: "Use it" }),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!input.value) return;
    setToken(input.value);
    clearNotice();
    again();
  });
  notice("token", "", form);
  input.focus();
}

async function waitForServer() {
  if (polling) return;
  polling = true;
  notice("gone", "", el("p", { text: "The server does not answer. What you see is its last answer; the page asks again every two seconds." }));
  while (!(await alive())) await new Promise((resolve) => setTimeout(resolve, 2000));
  polling = false;
  clearNotice();
  announce("The server is there again.");
  again();
}

/** Show an error as what it is. `source`: which part of the page asked; its next success takes the message away. */
export function report(error, source = "") {
  if (error instanceof Unreachable) waitForServer();
  else if (error instanceof ApiError && error.status === 401) askToken(error.code === "wrong_token");
  else {
    notice(
      "error",
      source,
      el("p", { text: error.message }),
      el("button", { type: "button", class: "plain", text: "Close", on: { click: () => clearNotice() } }),
    );
    if (!(error instanceof ApiError)) console.error(error);
  }
}
