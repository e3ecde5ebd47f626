// Dark and light: as the system prefers, or as the user has chosen.

export type Theme = "system" | "light" | "dark";

const key = "sidebus-theme";
const watchers = new Set<() => void>();

export function theme(): Theme {
  const chosen = localStorage.getItem(key);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(chosen: Theme): void {
  if (chosen === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, chosen);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  for (const draw of watchers) draw();
}

/** onTheme calls draw when colours change, until the returned function is called. */
export function onTheme(draw: () => void): () => void {
  watchers.add(draw);
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", draw);
  return () => {
    watchers.delete(draw);
    system.removeEventListener("change", draw);
  };
}

/** colour returns a colour of the style sheet as it is now: a canvas knows no variables. */
export function colour(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
