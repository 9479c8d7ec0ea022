// Confirm the photos of a group page by page: 1, 2, 4, … until the first "no", then half as many.

import { act, getJson, notify } from "./api.js";
import { ask, button, buttons, count, el, printable } from "./dom.js";
import { store, title } from "./store.js";
import { picture } from "./tiles.js";

const LARGEST = 32;

export async function checkGroup(group) {
  if (!store.byId.has(group)) return;
  let size = 1;
  let doubling = true;
  let confirmed = 0;
  for (;;) {
    if (!store.byId.has(group)) return;
    let waiting;
    try {
      waiting = (await getJson(`/api/candidates?group=${group}`)).items;
    } catch (error) {
      notify(error.message, { bad: true });
      return;
    }
    const page = waiting.slice(0, size);
    if (!page.length) {
      notify(`Nothing is left to check in ${printable(title(group))}; ${count(confirmed, "photo")} confirmed.`);
      return;
    }
    const no = await askPage(group, page, waiting.length);
    if (no === null) return;
    const yes = page.filter((item) => !no.has(item));
    if (!(await act("check", { group, yes, no: [...no] }, { quiet: true }))) return;
    confirmed += yes.length;
    if (no.size) doubling = false;
    size = Math.max(1, Math.min(LARGEST, doubling ? 2 * size : no.size ? size >> 1 : size));
  }
}

function askPage(group, page, left) {
  const no = new Set();
  const sure = store.byId
    .get(group)
    .items.filter((item) => store.items[item].held && !page.includes(item))
    .slice(0, 5);
  return ask(
    `Do these belong to ${printable(title(group))}?`,
    (close, dialog) => {
      const done = button("", () => close(no), { class: "strong", key: "Enter" });
      const say = () => {
        done.firstChild.textContent = no.size
          ? `${page.length - no.size} belong, ${no.size} not`
          : page.length === 1
            ? "Yes, it does"
            : `Yes, all ${page.length}`;
      };
      const tiles = page.map((item, index) => {
        const pick = button(
          picture(item),
          () => {
            if (no.has(item)) no.delete(item);
            else no.add(item);
            pick.classList.toggle("no", no.has(item));
            pick.setAttribute("aria-pressed", String(no.has(item)));
            say();
          },
          { class: "checked", "aria-pressed": "false", "aria-label": `Photo ${index + 1}: does not belong` },
        );
        return pick;
      });
      dialog.addEventListener("keydown", (event) => {
        const at = tiles.indexOf(document.activeElement);
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) tiles[(at + step + tiles.length) % tiles.length].focus();
        else if (event.key === "Enter") close(no);
        else if (event.key.toLowerCase() === "x") tiles[Math.max(at, 0)].click();
        else return;
        event.preventDefault();
      });
      say();
      tiles[0].setAttribute("autofocus", "");
      return [
        sure.length
          ? el(
              "div",
              { class: "samples" },
              el("span", { class: "quiet" }, "Confirmed so far: "),
              ...sure.map((item) => picture(item)),
            )
          : null,
        el(
          "p",
          { class: "quiet" },
          page.length === 1
            ? "Mark it if it does not belong: click, or X."
            : "Mark those that do not belong: click, or arrows and X.",
          ` ${count(left, "photo")} to go.`,
        ),
        el("div", { class: "page" }, ...tiles),
        buttons(
          done,
          button("Stop here", () => close(null), { key: "Esc" }),
        ),
      ].filter(Boolean);
    },
    { class: "wide" },
  );
}
