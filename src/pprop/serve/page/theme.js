// Light or dark: the system's choice unless the reader made one. A plain script in the head, so that the first paint is right.
(() => {
  const KEY = "pprop-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }

  function current() {
    return chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  }

  function show() {
    document.documentElement.dataset.theme = current();
    const button = document.getElementById("theme");
    if (!button) return;
    const other = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
    button.title = `Switch to the ${other} theme`;
  }

  show();
  dark.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      chosen = current() === "dark" ? "light" : "dark";
      try {
        localStorage.setItem(KEY, chosen);
      } catch {
        // See above.
      }
      show();
    });
  });
})();
