// From the server's positions to places on the screen: scaled to the room there is, then moved apart where nodes overlap.

import { textWidth } from "./measure.js";

const ROUNDS = 60;
const GAP = 5;

/** The radius of a node from its influence, by area; the largest is `most`. */
export const radius = (influence, largest, most) => Math.max(4.5, most * Math.sqrt(Math.max(influence, 0) / (largest || 1)));

/** Places in pixels: a map from id to {x, y, r}. The centre stays in the middle. */
export function place(nodes, centre, width, height) {
  const margin = Math.min(46, width / 9);
  const largest = Math.max(...nodes.map((node) => node.influence));
  const most = Math.max(13, Math.min(26, Math.min(width, height) / 20));
  // The server's places lie in a square: they are drawn out to the room there is, but not out of shape.
  const stretch = (axis) => Math.min(1.5, 1 / Math.max(0.1, ...nodes.map((node) => Math.abs(node[axis]))));
  const [wide, high] = [stretch("x"), stretch("y")];
  const spots = nodes.map((node) => ({
    key: String(node.id),
    fixed: String(node.id) === centre,
    x: width / 2 + node.x * wide * (width / 2 - margin),
    y: height / 2 + node.y * high * (height / 2 - margin),
    r: radius(node.influence, largest, most),
  }));
  for (let round = 0; round < ROUNDS; round += 1) if (!separate(spots)) break;
  for (const spot of spots) {
    const side = spot.r + 12;
    spot.x = Math.min(width - side, Math.max(side, spot.x));
    spot.y = Math.min(height - side, Math.max(side, spot.y));
  }
  return new Map(spots.map((spot) => [spot.key, spot]));
}

function separate(spots) {
  let moved = false;
  for (let i = 0; i < spots.length; i += 1) {
    for (let j = i + 1; j < spots.length; j += 1) {
      const a = spots[i];
      const b = spots[j];
      let dx = b.x - a.x;
      let dy = b.y - a.y;
      let distance = Math.hypot(dx, dy);
      const room = a.r + b.r + GAP;
      if (distance >= room) continue;
      if (distance < 0.01) {
        // Two nodes in one place: part them in a direction that depends on their order alone.
        dx = Math.cos(j * 2.4);
        dy = Math.sin(j * 2.4);
        distance = 1;
      }
      const push = (room - distance) / distance;
      const partA = a.fixed ? 0 : b.fixed ? 1 : 0.5;
      a.x -= dx * push * partA;
      a.y -= dy * push * partA;
      b.x += dx * push * (1 - partA);
      b.y += dy * push * (1 - partA);
      moved = true;
    }
  }
  return moved;
}

/** The node next to another in the direction of an arrow key, or null. */
export function neighbourInDirection(spots, from, key) {
  const [ux, uy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const here = spots.get(from);
  let best = null;
  let least = Infinity;
  for (const [id, spot] of spots) {
    const along = (spot.x - here.x) * ux + (spot.y - here.y) * uy;
    const across = Math.abs((spot.x - here.x) * uy) + Math.abs((spot.y - here.y) * ux);
    if (id === from || along <= 0) continue;
    const cost = along + 2 * across;
    if (cost < least) [best, least] = [id, cost];
  }
  return best;
}

/** Which labels fit: greedy by order, each beside or below its node, none on another label or node. */
export function placeLabels(wanted, spots, width, height) {
  const taken = [...spots.values()].map(({ x, y, r }) => ({ left: x - r, right: x + r, top: y - r, bottom: y + r }));
  const placed = new Map();
  for (const { id, text } of wanted) {
    const { x, y, r } = spots.get(id);
    const wide = textWidth(text, 13, 600) + 8;
    const choices = [
      { dx: 0, dy: r + 15, anchor: "middle", left: x - wide / 2, top: y + r + 4 },
      { dx: 0, dy: -r - 7, anchor: "middle", left: x - wide / 2, top: y - r - 18 },
      { dx: r + 6, dy: 4, anchor: "start", left: x + r + 5, top: y - 7 },
      { dx: -r - 6, dy: 4, anchor: "end", left: x - r - 5 - wide, top: y - 7 },
    ];
    for (const choice of choices) {
      const box = { left: choice.left, right: choice.left + wide, top: choice.top, bottom: choice.top + 14 };
      const outside = box.left < 2 || box.right > width - 2 || box.top < 2 || box.bottom > height - 2;
      if (outside || taken.some((other) => overlaps(box, other))) continue;
      placed.set(id, choice);
      taken.push(box);
      break;
    }
  }
  return placed;
}

const overlaps = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
