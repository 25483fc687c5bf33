// How wide a text is, for labels and legends that must not run into each other.

const context = document.createElement("canvas").getContext("2d");
let family = "";

export function textWidth(text, size, weight = 400) {
  family ||= getComputedStyle(document.body).fontFamily;
  context.font = `${weight} ${size}px ${family}`;
  return context.measureText(text).width;
}
