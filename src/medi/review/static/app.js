// Start: load, draw, listen.

import { act, getJson, load, notify } from "./api.js";
import { bar } from "./bar.js";
import { cardOf, dropInto, refreshChoice, showGroups } from "./cards.js";
import { accept } from "./dialogs.js";
import { byId, count, printable } from "./dom.js";
import { focusTile, help, listen } from "./keys.js";
import { lookAt } from "./look.js";
import { refreshMap, showMap } from "./map.js";
import { showQuestion } from "./question.js";
import { onChange, onPick, picked, pool, selection, store } from "./store.js";
import { showStrip } from "./strip.js";
import { itemOf, pickUp, refreshTiles, visibleTiles } from "./tiles.js";

const view = byId("view");
const VIEWS = { groups: showGroups, strip: showStrip, map: showMap };
let shown = "groups";

function draw() {
  steady(() => {
    const focused = focusNow();
    VIEWS[shown](view);
    keepFocus(focused);
    showQuestion();
  });
  bar();
  const photos = store.items.length;
  const named = store.groups.filter((group) => group.name).length;
  byId("counts").textContent = `${count(photos, "photo")} · ${count(store.groups.length, "group")}, ${named} named`;
  byId("undo").disabled = !store.undo;
  byId("redo").disabled = !store.redo;
  byId("undo").title = store.undo && `Undo: ${store.undo} (Z)`;
  byId("redo").title = store.redo && `Redo: ${store.redo} (Shift Z)`;
  byId("accept").disabled = !named && !store.items.some((item) => item.known && item.held);
}

// The card in use, or else the first in sight, stays where it is on the screen, whatever comes or goes around it.
function steady(redraw) {
  const tops = [...view.querySelectorAll(".card")].map((card) => [card, card.getBoundingClientRect()]);
  const seen = tops.filter(([, box]) => box.bottom > 0 && box.top < innerHeight);
  const inUse = seen.filter(([card]) => card.dataset.group === String(store.inUse));
  const places = [...inUse, ...seen].map(([card, box]) => [card.dataset, box.top]);
  redraw();
  const still = places.find(([key]) => cardOf(view, key));
  if (still) scrollBy({ top: cardOf(view, still[0]).getBoundingClientRect().top - still[1], behavior: "instant" });
}

// A redrawn page keeps the focus where it was: on the photo, the group, or what took its place.
function focusNow() {
  const active = document.activeElement;
  if (!view.contains(active) || active === view) return null;
  const card = active.closest(".card");
  const tiles = card ? visibleTiles(card) : [];
  return {
    item: itemOf(active),
    place: tiles.indexOf(active.closest(".tile")),
    group: card?.dataset.group ?? null,
    label: active.closest(".tile") ? null : active.textContent,
  };
}

function keepFocus(focused) {
  if (!view.querySelector('.pick[tabindex="0"]')) {
    const first = view.querySelector(".pick");
    if (first) first.tabIndex = 0;
  }
  if (!focused) return;
  const card = focused.group === null ? null : view.querySelector(`.card[data-group="${focused.group}"]`);
  if (focused.label && card) {
    const same = [...card.querySelectorAll("button")].find((one) => one.textContent === focused.label);
    (same ?? card).focus({ preventScroll: true });
  } else if (focused.item !== null) {
    const tiles = card ? visibleTiles(card) : [];
    const tile =
      tiles.find((one) => Number(one.dataset.item) === focused.item) ??
      tiles[Math.min(focused.place, tiles.length - 1)] ??
      view.querySelector(`.tile[data-item="${focused.item}"]`) ??
      view.querySelector(".tile");
    if (tile) focusTile(tile, true);
  }
}

function reveal(card) {
  if (!card) return;
  focusTile(card.querySelector(".tile"));
  card.scrollIntoView({ block: "nearest" });
}

function show(name) {
  shown = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const on = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
  }
  view.setAttribute("aria-labelledby", `tab-${name}`);
  draw();
}

function listenToPage() {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => show(tab.dataset.view));
    tab.addEventListener("keydown", (event) => {
      const names = Object.keys(VIEWS);
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      show(names[(names.indexOf(shown) + step + names.length) % names.length]);
      byId(`tab-${shown}`).focus();
    });
  }
  document.addEventListener("next-view", () => {
    const names = Object.keys(VIEWS);
    show(names[(names.indexOf(shown) + 1) % names.length]);
  });
  document.addEventListener("select", (event) => {
    event.detail.forEach((item) => selection.items.add(item));
    picked();
    view.querySelector(`.tile[data-item="${event.detail[0]}"]`)?.scrollIntoView({ block: "center" });
  });
  document.addEventListener("reveal", (event) => reveal(cardOf(view, { group: event.detail })));
  for (const kind of ["pointerdown", "focusin"])
    view.addEventListener(kind, (event) => {
      const group = event.target.closest(".card")?.dataset.group;
      if (group !== undefined) store.inUse = Number(group);
    });
  view.addEventListener("click", (event) => {
    const item = itemOf(event.target);
    if (item === null) return;
    if (event.target.closest(".zoom"))
      lookAt(
        item,
        visibleTiles(event.target.closest(".tiles, .row")).map((one) => Number(one.dataset.item)),
      );
    else if (event.detail !== 0) pickUp(item, event); // keys have their own listener
  });
  view.addEventListener("dblclick", (event) => {
    const item = itemOf(event.target);
    if (item !== null) lookAt(item);
  });
  byId("undo").addEventListener("click", () => act("undo", {}, { clear: false }));
  byId("redo").addEventListener("click", () => act("redo", {}, { clear: false }));
  byId("again").addEventListener("click", () => act("regroup"));
  byId("accept").addEventListener("click", () => accept(null));
  byId("help").addEventListener("click", help);
  dropInto(view);
  listen();
}

onChange(draw);
onPick(() => {
  refreshTiles(view);
  refreshChoice(view);
  refreshMap();
  bar();
});

// The token in the address has done its work.
history.replaceState(null, "", "/");
try {
  Object.assign(pool, await getJson("/api/pool"));
  document.title = `Review of ${printable(pool.folder)}`;
  byId("folder").textContent = printable(pool.folder);
  byId("again").hidden = pool.live || !pool.positions;
  listenToPage();
  await load();
  if (pool.closed) notify(printable(pool.closed));
  document.body.classList.add("ready");
} catch (error) {
  notify(error.message, { bad: true });
  byId("counts").textContent = "";
}
