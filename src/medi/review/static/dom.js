// Small helpers: elements from plain text (never from HTML), and names for things.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "hue") element.style.setProperty("--hue", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// Whether a photo is doubtful is decided by the number that is shown, as the program does.
const perCent = (share) => Math.floor(100 * share + 0.5);
export const percent = (share) => `${perCent(share)}\u00a0%`;
export const isDoubtful = ({ confidence, held }) => perCent(confidence) < 67 && !held;

// Neighbouring numbers get hues far apart.
export const hue = (group) => Math.round(((215 + group * 137.508) % 360) * 10) / 10;

// Characters that would turn text around or cannot be seen are spelled out.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;
export const printable = (text) => text.replace(UNSEEN, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

export const baseName = (path) => printable(path.slice(path.lastIndexOf("/") + 1));

// A modal dialog that is gone once it is closed; `build` gets a function that closes it with a result.
export function ask(title, build, options = {}) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    let result = null;
    const dialog = el("dialog", { class: options.class ?? "", "aria-labelledby": "dialog-title" });
    const close = (value) => {
      result = value;
      dialog.close();
    };
    dialog.append(
      el("h2", { id: "dialog-title", class: options.hideTitle ? "unseen" : "" }, title),
      ...build(close, dialog).filter(Boolean),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before?.isConnected) before.focus({ preventScroll: true });
      resolve(result);
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) close(null);
    });
    document.body.append(dialog);
    dialog.showModal();
    const first = dialog.querySelector("[autofocus]");
    if (first) first.focus({ preventScroll: true });
  });
}

export const buttons = (...children) => el("div", { class: "buttons" }, ...children);

export function button(label, onclick, attributes = {}) {
  const { key, ...others } = attributes;
  return el(
    "button",
    { type: "button", onclick, ...others },
    label,
    key ? el("kbd", { "aria-hidden": "true" }, key) : null,
  );
}

// True, false, or null where the dialog was left.
export function confirm(title, text, yes, no = "Cancel") {
  return ask(title, (close) => [
    el("p", {}, text),
    buttons(
      button(yes, () => close(true), { class: "strong", autofocus: true }),
      button(no, () => close(false)),
    ),
  ]);
}
