// The edits of a what-if, with undo and redo. The state and its address hold the edits; this keeps what came before.

import { current, go, listen } from "./state.js";

let past = [];
let future = [];
let own = false;

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function set(edits) {
  own = true;
  go({ edits });
  own = false;
}

function change(edits) {
  past.push(current().edits);
  future = [];
  set(edits);
}

const meets = (a, b, directed) =>
  (a.source === b.source && a.target === b.target) || (!directed && a.source === b.target && a.target === b.source);

/** Add an edit. One that takes back an earlier edit of the same edge removes that one instead. */
export function addEdit(edit, directed) {
  const { edits } = current();
  const at = edits.findLastIndex((one) => meets(one, edit, directed));
  if (at >= 0 && edits[at].op === edit.op) return false;
  change(at >= 0 ? edits.filter((_, i) => i !== at) : [...edits, edit]);
  return true;
}

export const dropEdit = (index) => change(current().edits.filter((_, i) => i !== index));
export const dropAll = () => change([]);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

export function undo() {
  if (!canUndo()) return;
  future.push(current().edits);
  set(past.pop());
}

export function redo() {
  if (!canRedo()) return;
  past.push(current().edits);
  set(future.pop());
}

// Edits may also change by the browser's back button: undo then leads to those that were there.
listen((state, previous) => {
  if (own || same(state.edits, previous.edits) || previous.id === null) return;
  past.push(previous.edits);
  future = [];
});
