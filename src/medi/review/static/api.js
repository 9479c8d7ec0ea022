// Talk to the server: one action after the other, each upon the state that the page shows.

import { byId, confirm, el, button } from "./dom.js";
import { selection, store, take } from "./store.js";

let queue = Promise.resolve();

export async function get(address) {
  const response = await fetch(address, { headers: { Accept: "application/json" } });
  if (!response.ok) throw new Error(await reason(response));
  return response;
}

export const getJson = async (address) => (await get(address)).json();

async function reason(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text;
  }
}

function received(response, state) {
  const words = (name) => decodeURIComponent(response.headers.get(name) ?? "");
  take(state, words("Medi-Undo"), words("Medi-Redo"));
}

export async function load() {
  const response = await get("/api/state");
  received(response, await response.json());
}

// Send an action; true where it was taken. What is typed or selected stays where it was not.
export function act(action, args = {}, options = {}) {
  const result = queue.then(() => send(action, args, options));
  queue = result.catch(() => false);
  return result;
}

async function send(action, args, options) {
  const last = store.undo;
  document.body.setAttribute("aria-busy", "true");
  try {
    const response = await fetch("/api/actions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ seq: store.seq, action, ...args }),
    });
    if (response.ok) {
      if (options.clear !== false) {
        selection.items.clear();
        selection.groups.clear();
      }
      received(response, await response.json());
      if (options.quiet !== true) said(action, last);
      return true;
    }
    const answer = response.headers.get("Content-Type")?.includes("json")
      ? await response.json()
      : { error: await response.text() };
    if (response.status === 409) {
      await load();
      notify(answer.error, { bad: true });
    } else if (response.status === 400 && answer.overridable) {
      if (await confirm("That does not fit together", answer.error, "Keep the new answer", "Leave it as it was"))
        return send(action, { ...args, override: true }, options);
    } else notify(answer.error, { bad: true });
    return false;
  } catch {
    notify("No answer: start `medi review` again in the terminal. Everything up to now is kept.", { bad: true });
    return false;
  } finally {
    document.body.removeAttribute("aria-busy");
  }
}

function said(action, last) {
  if (action === "undo") return notify(`Undone: ${last}`);
  if (action === "redo") return notify(`Done again. ${store.note?.text ?? ""}`);
  const note = store.note;
  if (!note) return undefined;
  return notify([note.text, ...(note.overruled ?? []), note.why ?? ""].filter(Boolean).join(" "), {
    moved: note.moved ?? [],
    undo: true,
  });
}

// One line above the page, so that nothing on it moves, that says what happened, and why.
export function notify(text, options = {}) {
  const notice = byId("notice");
  notice.hidden = false;
  notice.classList.toggle("bad", options.bad === true);
  const tools = el("span", { class: "inline" });
  if (options.moved?.length)
    tools.append(
      button("Select what moved", () => document.dispatchEvent(new CustomEvent("select", { detail: options.moved }))),
    );
  if (options.undo) tools.append(button("Undo", () => act("undo"), { key: "Z" }));
  tools.append(button("×", () => (notice.hidden = true), { "aria-label": "Close this message", class: "bare" }));
  notice.replaceChildren(el("span", { dir: "auto" }, text), tools);
}
