// A photo on the page: pick it, drag it, or look at it in full.

import { baseName, el, isDoubtful, percent, printable } from "./dom.js";
import { photo, picked, pool, selection, store, toggle } from "./store.js";

const tiles = new Map();
let lastPicked = null;

function describe(item) {
  const one = store.items[item];
  const parts = [baseName(one.path), `${percent(one.confidence)} sure`];
  if (one.held) parts.push("settled by you");
  if (one.accepted) parts.push(`accepted as ${printable(one.accepted)}`);
  if (item in pool.copies) parts.push(`the same photo as ${baseName(store.items[pool.copies[item]].path)}`);
  if (store.moved.has(item)) parts.push("just moved");
  return parts.join(", ");
}

export const picture = (item, attributes = {}) => image(photo(item), attributes);

// Typical photos of a known class.
export const ofClass = (name) =>
  Array.from({ length: 4 }, (_, number) => image(`/known/${pool.known.indexOf(name)}/${number}`));

function image(src, attributes = {}) {
  const image = el("img", { src, alt: "", decoding: "async", draggable: "false", ...attributes });
  image.addEventListener("error", () => {
    image.classList.add("gone");
    image.alt = "moved or deleted";
  });
  return image;
}

// The one element of a photo; it is made when it is first shown, and moves from card to card.
export function tile(item) {
  let element = tiles.get(item);
  if (!element) {
    element = el(
      "div",
      { class: "tile", dataset: { item } },
      el(
        "button",
        { type: "button", class: "pick", tabindex: "-1", draggable: "true" },
        picture(item, { loading: "lazy" }),
        el("span", { class: "sure" }),
      ),
      el("button", { type: "button", class: "zoom", tabindex: "-1", "aria-hidden": "true", title: "Look at it" }, "⤢"),
    );
    tiles.set(item, element);
  }
  update(element, item);
  return element;
}

function update(element, item) {
  const one = store.items[item];
  const pick = element.firstChild;
  const chosen = selection.items.has(item);
  element.classList.toggle("picked", chosen);
  element.classList.toggle("doubtful", isDoubtful(one));
  element.classList.toggle("held", one.held === true);
  element.classList.toggle("moved", store.moved.has(item));
  element.classList.toggle("accepted", one.accepted !== undefined);
  pick.setAttribute("aria-pressed", String(chosen));
  pick.setAttribute("aria-label", describe(item));
  pick.title = describe(item);
  pick.lastChild.textContent = (item in pool.copies ? "= " : "") + (one.held ? "✓" : percent(one.confidence));
}

export const itemOf = (element) => {
  const found = element?.closest?.(".tile");
  return found ? Number(found.dataset.item) : null;
};

export const visibleTiles = (root = document) =>
  [...root.querySelectorAll(".tile")].filter((one) => one.offsetParent !== null);

export function pickUp(item, event) {
  if (event?.shiftKey && lastPicked !== null) {
    const all = visibleTiles(document.getElementById("view")).map((one) => Number(one.dataset.item));
    const [from, to] = [all.indexOf(lastPicked), all.indexOf(item)].sort((a, b) => a - b);
    if (from >= 0) all.slice(from, to + 1).forEach((one) => selection.items.add(one));
    else selection.items.add(item);
  } else toggle(selection.items, item);
  lastPicked = item;
  picked();
}

export function refreshTiles(root) {
  for (const element of root.querySelectorAll(".tile")) update(element, Number(element.dataset.item));
}
