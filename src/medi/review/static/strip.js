// All photos in one row, neighbours alike: a cut says that two neighbours, and what lies behind them, differ.

import { act } from "./api.js";
import { baseName, byId, count, el, hue, printable } from "./dom.js";
import { pool, store, title } from "./store.js";
import { tile } from "./tiles.js";

const WIDTH = 132;
let only = "all";
let place = 0;

export function showStrip(view) {
  const choice = el(
    "select",
    {
      id: "only",
      onchange: (event) => {
        only = event.target.value;
        place = 0;
        showStrip(view);
        byId("only").focus();
      },
    },
    el("option", { value: "all" }, `all ${count(store.items.length, "photo")}`),
  );
  for (const id of store.order)
    choice.append(
      el(
        "option",
        { value: String(id), selected: String(id) === only },
        `${printable(title(id))} (${store.byId.get(id).items.length})`,
      ),
    );
  if (only !== "all" && !store.byId.has(Number(only))) only = "all";
  const items = pool.order.filter((item) => only === "all" || store.groupOf.get(item) === Number(only));
  const row = el("div", { class: "row" });
  row.style.width = `${items.length * WIDTH}px`;
  const scroller = el("div", { class: "strip", tabindex: "-1" }, row);
  let first = -1;
  let last = -1;
  const draw = () => {
    place = scroller.scrollLeft;
    const from = Math.max(0, Math.floor(place / WIDTH) - 10);
    const to = Math.min(items.length, Math.ceil((place + scroller.clientWidth) / WIDTH) + 10);
    if (from === first && to === last) return;
    [first, last] = [from, to];
    const focused = row.contains(document.activeElement) ? document.activeElement.closest(".slot")?.dataset.at : null;
    row.replaceChildren(...items.slice(from, to).map((item, index) => slot(items, from + index)));
    if (focused) row.querySelector(`.slot[data-at="${focused}"] .pick`)?.focus({ preventScroll: true });
  };
  scroller.addEventListener("scroll", draw, { passive: true });
  view.replaceChildren(
    el("div", { class: "sorting" }, el("label", { for: "only" }, "Show "), choice),
    el(
      "p",
      { class: "quiet" },
      "Photos that look alike lie side by side. Cut (✂, or B on a photo: before it) inside a group to split it there; cut between two groups to say that they differ.",
    ),
    scroller,
  );
  scroller.scrollLeft = place;
  draw();
  new ResizeObserver(draw).observe(scroller);
}

function slot(items, at) {
  const item = items[at];
  const group = store.groupOf.get(item);
  const before = items[at - 1];
  const element = el("div", { class: "slot", dataset: { at }, hue: group === undefined ? null : hue(group) });
  element.style.left = `${at * WIDTH}px`;
  if (before !== undefined) {
    const same = group !== undefined && store.groupOf.get(before) === group;
    const what = same
      ? `Split ${printable(title(group))} between ${baseName(store.items[before].path)} and ${baseName(store.items[item].path)}`
      : "Say that these two differ";
    element.append(
      el(
        "button",
        {
          type: "button",
          class: `cut${same ? "" : " edge"}`,
          tabindex: "-1",
          title: what,
          "aria-label": what,
          onclick: () => cut(items, at),
        },
        "✂",
      ),
    );
  }
  element.append(
    tile(item),
    el(
      "span",
      { class: "label" },
      group === undefined
        ? store.items[item].known
          ? `★ ${printable(store.items[item].known)}`
          : "–"
        : printable(title(group)),
    ),
  );
  return element;
}

function cut(items, at) {
  const [left, right] = [items[at - 1], items[at]];
  const group = store.groupOf.get(right);
  if (group === undefined || store.groupOf.get(left) !== group)
    return act("answer", { a: left, b: right, same: false }, { clear: false });
  const whole = pool.order.filter((item) => store.groupOf.get(item) === group);
  const middle = whole.indexOf(right);
  return act("split", { group, parts: [whole.slice(0, middle), whole.slice(middle)] }, { clear: false });
}

export function cutBefore(element) {
  element.closest(".slot")?.querySelector(".cut")?.click();
}
