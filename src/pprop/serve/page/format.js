// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const MINUS = "\u2212";

export const count = (n) => whole.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}%`;

/** A weight of propagation. They add up to one or, by the symmetric matrix, to a little more or less: no percentages. */
export function weight(x) {
  return x > 0 && x < 0.0005 ? "<0.001" : x.toFixed(3);
}

export const signed = (x, digits = 4) => (x < 0 ? MINUS : "+") + Math.abs(x).toFixed(digits);
export const decimal = (x, digits = 4) => (x < 0 ? MINUS : "") + Math.abs(x).toFixed(digits);

/**
 * Round terms so that they add up to their rounded total (largest remainders), each less than one last digit from its
 * value. A column that a reader adds up by hand then comes out right.
 */
export function roundToTotal(terms, total, digits = 4) {
  const unit = 10 ** digits;
  const floors = terms.map((term) => Math.floor(term * unit));
  let missing = Math.round(total * unit) - floors.reduce((sum, floor) => sum + floor, 0);
  const order = terms.map((term, i) => [term * unit - floors[i], i]).sort((a, b) => b[0] - a[0]);
  for (const [, i] of order) {
    if (missing <= 0) break;
    floors[i] += 1;
    missing -= 1;
  }
  return missing === 0 ? floors.map((floor) => floor / unit) : terms;
}

/** What a node is called: its name, else its id. */
export const title = (node) => (node.name === null || node.name === undefined || node.name === "" ? String(node.id) : node.name);
export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text);
