// Everything by keyboard: arrows walk among photos, letters act on what is selected or focused.

import { act, notify } from "./api.js";
import { aside, merge, reject } from "./bar.js";
import { allRight, leaveOffer, takeOffer } from "./cards.js";
import { accept, checkGroup, chooseKnown, choosePlace, nameGroup, newGroup, splitGroup } from "./dialogs.js";
import { ask, button, buttons, byId, el } from "./dom.js";
import { lookAt } from "./look.js";
import { answer, skip } from "./question.js";
import { clearSelection, picked, selection, store, toggle } from "./store.js";
import { cutBefore } from "./strip.js";
import { itemOf, pickUp, visibleTiles } from "./tiles.js";

const HELP = [
  [
    "Photos",
    [
      ["← → ↑ ↓", "walk"],
      ["Space", "select; with Shift from the last one"],
      ["Enter", "look at it in full, beside what it is like"],
      ["0 – 9", "move to the group with that number"],
      ["M", "move to…"],
      ["G", "new group of them"],
      ["X", "not this: it does not belong here"],
      ["A", "set aside"],
      ["K", "known class…"],
      ["B", "cut before it, in the strip"],
    ],
  ],
  [
    "Groups",
    [
      ["[ ]", "the group before, the next"],
      ["N", "name"],
      ["R", "all right: its photos belong there"],
      ["O", "take what is offered beside it"],
      ["L", "leave what is offered where it is"],
      ["C", "check its photos page by page"],
      ["S", "split"],
      ["V", "choose; then J"],
      ["J", "merge the chosen ones"],
      ["E", "accept"],
    ],
  ],
  [
    "Question",
    [
      ["Y U I", "yes, or the first, second, third place"],
      ["D", "no, or none of them"],
      ["P", "pass on to the next question"],
    ],
  ],
  [
    "Everything",
    [
      ["Z", "undo (also Ctrl Z)"],
      ["Shift Z", "redo (also Ctrl Y)"],
      ["T", "next view: groups, strip, map"],
      ["Esc", "clear the selection"],
      ["?", "this help"],
    ],
  ],
];

let letters = localStorage.getItem("letters") !== "off";

export function help() {
  return ask(
    "Keys",
    (close) => {
      const box = el("input", {
        type: "checkbox",
        id: "letters",
        onchange: () => {
          letters = box.checked;
          localStorage.setItem("letters", letters ? "on" : "off");
        },
      });
      box.checked = letters;
      return [
        el(
          "div",
          { class: "help" },
          ...HELP.map(([name, rows]) =>
            el(
              "section",
              {},
              el("h3", {}, name),
              el(
                "dl",
                {},
                ...rows.map(([key, text]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text))),
              ),
            ),
          ),
        ),
        el(
          "p",
          { class: "quiet" },
          "Letters act on the selected photos, or on the one in focus; those for groups on the group in focus. A group’s number is its key, and stays; type both digits of 10 and more. Photos can be dragged to a group, too.",
        ),
        el("p", {}, box, el("label", { for: "letters" }, " Letters are shortcuts")),
        buttons(button("Close", () => close(null), { key: "Esc", autofocus: true, class: "strong" })),
      ];
    },
    { class: "wide" },
  );
}

const focusedGroup = () => {
  const card = document.activeElement?.closest?.(".card[data-group]");
  return card ? Number(card.dataset.group) : null;
};

const targets = () => {
  if (selection.items.size) return [...selection.items];
  const item = itemOf(document.activeElement);
  return item === null ? [] : [item];
};

function onPhotos(action) {
  const items = targets();
  if (!items.length) return notify("Select photos first, or walk to one with the arrows.", { bad: true });
  return action(items);
}

// The number of a group moves photos there; where another number begins with what was typed, it waits for more.
const PATIENCE = 700;
let typed = "";
let waiting = 0;

function digit(key) {
  clearTimeout(waiting);
  typed += key;
  const go = () => {
    const group = Number(typed);
    typed = "";
    if (!store.byId.has(group)) return notify(`There is no group ${group}.`, { bad: true });
    return onPhotos((items) => act("move", { items, group }));
  };
  const more = store.order.some((id) => String(id).startsWith(typed) && String(id) !== typed);
  if (more) waiting = setTimeout(go, PATIENCE);
  else go();
}

function onCard(action) {
  const card = document.activeElement?.closest?.(".card");
  if (!card) return notify("Go to a group first: ] and [ walk among them.", { bad: true });
  return action(card);
}

function onGroup(action) {
  const group = focusedGroup() ?? (selection.groups.size === 1 ? [...selection.groups][0] : null);
  if (group === null) return notify("Go to a group first: ] and [ walk among them.", { bad: true });
  return action(group);
}

export function focusTile(element, still = false) {
  if (!element) return;
  for (const other of document.querySelectorAll('.pick[tabindex="0"]')) other.tabIndex = -1;
  const pick = element.querySelector(".pick");
  pick.tabIndex = 0;
  pick.focus({ preventScroll: true });
  if (!still) element.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function walk(key) {
  const tiles = visibleTiles(byId("view"));
  const now = document.activeElement?.closest?.(".tile");
  const at = tiles.indexOf(now);
  if (at < 0) return focusTile(document.activeElement?.closest?.(".card")?.querySelector(".tile") ?? tiles[0]);
  if (key === "ArrowRight") return focusTile(tiles[at + 1]);
  if (key === "ArrowLeft") return focusTile(tiles[at - 1]);
  const box = now.getBoundingClientRect();
  const down = key === "ArrowDown" ? 1 : -1;
  let best = null;
  let least = Infinity;
  for (const one of tiles) {
    const other = one.getBoundingClientRect();
    const away = down * (other.top - box.top);
    const cost = away * 4 + Math.abs(other.left - box.left);
    if (away > 4 && cost < least) [best, least] = [one, cost];
  }
  return focusTile(best);
}

function nextCard(step) {
  const cards = [...byId("view").querySelectorAll(".card")];
  if (!cards.length) return;
  const at = cards.indexOf(document.activeElement?.closest?.(".card"));
  const card = cards[at < 0 ? 0 : (at + step + cards.length) % cards.length];
  focusTile(card.querySelector(".tile"));
  card.scrollIntoView({ block: "nearest" });
}

const LETTERS = {
  m: () => onPhotos(choosePlace),
  g: () => onPhotos(newGroup),
  x: () => onPhotos(reject),
  a: () => onPhotos(aside),
  k: () => onPhotos(chooseKnown),
  b: () => cutBefore(document.activeElement),
  n: () => onGroup(nameGroup),
  r: () => onCard(allRight),
  o: () => onGroup(takeOffer),
  l: () => onGroup(leaveOffer),
  c: () => onGroup(checkGroup),
  s: () => onGroup(splitGroup),
  v: () =>
    onGroup((group) => {
      toggle(selection.groups, group);
      picked();
    }),
  j: () => merge([...selection.groups]),
  e: () => onGroup((group) => accept([group])),
  y: () => answer("Y"),
  u: () => answer("U"),
  i: () => answer("I"),
  d: () => answer("D"),
  p: skip,
  z: () => act("undo", {}, { clear: false }),
  Z: () => act("redo", {}, { clear: false }),
  t: () => document.dispatchEvent(new CustomEvent("next-view")),
  "[": () => nextCard(-1),
  "]": () => nextCard(1),
};

export function listen() {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || event.isComposing) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    const control = event.ctrlKey || event.metaKey;
    const { key } = event;
    let done = true;
    if (control && key.toLowerCase() === "z") act(event.shiftKey ? "redo" : "undo", {}, { clear: false });
    else if (control && key.toLowerCase() === "y") act("redo", {}, { clear: false });
    else if (control || event.altKey) done = false;
    else if (key.startsWith("Arrow") && !event.target.closest("[role=tablist]")) walk(key);
    else if (key === "Enter" && itemOf(event.target) !== null)
      lookAt(
        itemOf(event.target),
        visibleTiles(event.target.closest(".tiles, .row") ?? document).map((one) => Number(one.dataset.item)),
      );
    else if (key === " " && itemOf(event.target) !== null) pickUp(itemOf(event.target), event);
    else if (key === "Escape") clearSelection();
    else if (key === "?") help();
    else if (letters && /^[0-9]$/.test(key)) digit(key);
    else if (letters && LETTERS[key]) LETTERS[key]();
    else if (letters && key.length === 1 && !event.shiftKey && LETTERS[key.toLowerCase()]) LETTERS[key.toLowerCase()]();
    else done = false;
    if (done) event.preventDefault();
  });
}
