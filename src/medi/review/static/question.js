// "Same or different?": the question worth most, and what is known about it.

import { act, notify } from "./api.js";
import { baseName, button, byId, el, percent, printable } from "./dom.js";
import { store, title } from "./store.js";
import { lookAt, picture } from "./tiles.js";

const skipped = new Set();
let key = "";
let folded = false;

export const current = () => store.questions.find((one) => !skipped.has(`${one.a}-${one.b}`)) ?? null;

function side(item, both) {
  const where = store.groupOf.has(item) ? title(store.groupOf.get(item)) : (store.items[item].known ?? "on its own");
  return el(
    "figure",
    {},
    el(
      "button",
      {
        type: "button",
        class: "look",
        "aria-label": `Look at ${baseName(store.items[item].path)} in full`,
        onclick: () => lookAt(item, both),
      },
      picture(item),
    ),
    el("figcaption", {}, el("bdi", { dir: "auto" }, printable(where))),
  );
}

export function showQuestion() {
  const section = byId("question");
  const now = current();
  section.hidden = !now;
  if (!now) return;
  const fresh = `${now.a}-${now.b}-${store.groupOf.get(now.a)}-${store.groupOf.get(now.b)}-${folded}`;
  if (fresh === key && section.childElementCount) return;
  const had = section.contains(document.activeElement) ? document.activeElement.dataset.answer : null;
  key = fresh;
  const fold = button(
    folded ? "Show" : "Hide",
    () => {
      folded = !folded;
      showQuestion();
    },
    { class: "bare", "aria-expanded": String(!folded) },
  );
  const head = el("div", { class: "head" }, el("h2", { id: "question-title" }, "Same or different?"), fold);
  if (folded) return section.replaceChildren(head);
  section.replaceChildren(
    head,
    el("div", { class: "pair" }, side(now.a, [now.a, now.b]), side(now.b, [now.a, now.b])),
    el(
      "div",
      { class: "answers" },
      button("Same", () => answer(true), { key: "Y", class: "strong", dataset: { answer: "same" } }),
      button("Different", () => answer(false), { key: "D", class: "strong", dataset: { answer: "different" } }),
      button("Skip", skip, { key: "U", dataset: { answer: "skip" } }),
      el(
        "p",
        { class: "quiet" },
        `The computer’s guess: ${percent(now.probability)} same. No other answer would settle as much.`,
      ),
    ),
  );
  if (had) section.querySelector(`[data-answer="${had}"]`)?.focus({ preventScroll: true });
}

export function answer(same) {
  const now = current();
  if (!now) return notify("There is no question at the moment.");
  return act("answer", { a: now.a, b: now.b, same }, { clear: false });
}

export function skip() {
  const now = current();
  if (now) skipped.add(`${now.a}-${now.b}`);
  showQuestion();
  if (!current()) notify("That was the last question for now.");
}
