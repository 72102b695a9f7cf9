// Elements, made without markup: whatever a text says, it stays a text.

// Characters that change how others are shown, or that nobody sees: control characters, marks of direction, invisible
// ones. They are told by their names.
const HIDDEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}])/u;
const SHORT = { "\u001b": "ESC", "\r": "CR", "\u0000": "NUL", "\u200b": "ZWSP", "\ufeff": "BOM" };

export function el(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (name === "class") node.className = value;
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

export function svg(tag, options = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A text as nodes, with what would not be seen made visible.
export function shown(text) {
  return String(text)
    .split(HIDDEN)
    .map((piece, at) => {
      if (at % 2 === 0) return piece;
      const code = piece.codePointAt(0);
      const name = SHORT[piece] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
      return el("span", { class: "unseen", title: `the character U+${code.toString(16).padStart(4, "0")}` }, name);
    })
    .filter((piece) => piece !== "");
}

export const block = (text, kind = "") => el("pre", { class: kind, tabindex: "0" }, shown(text));

export function fold(title, open, ...children) {
  return el("details", { open }, el("summary", {}, title), children);
}

// Two ways to look at the same thing; made when they are first looked at.
export function either(label, ways) {
  const place = el("div", { class: "stack" });
  const buttons = ways.map(([name, make], at) =>
    el("button", { type: "button", "aria-pressed": at === 0 ? "true" : "false", on: { click: () => choose(at) } }, name),
  );
  function choose(at) {
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", other === at ? "true" : "false"));
    place.replaceChildren(...[ways[at][1]()].flat());
  }
  choose(0);
  return [el("div", { class: "either", role: "group", "aria-label": label }, buttons), place];
}

export function copyButton(name, text, hint) {
  const button = el("button", { type: "button", title: hint ?? "" }, name);
  button.disabled = !text;
  button.addEventListener("click", async () => {
    const done = await copy(text);
    button.textContent = done ? "copied" : "not allowed here";
    setTimeout(() => (button.textContent = name), 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { class: "away" }); // without TLS, and not on this machine, there is no clipboard
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 / 1024).toFixed(1)} MB`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
