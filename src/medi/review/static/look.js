// The whole photo, beside typical ones of its group, of the nearest other group and of the nearest known class.

import { act, getJson } from "./api.js";
import { chooseKnown, choosePlace } from "./dialogs.js";
import { ask, baseName, button, buttons, el, percent, printable } from "./dom.js";
import { photo, pool, selection, store, title } from "./store.js";
import { ofClass, picture, pickUp } from "./tiles.js";

const TYPICAL = 3;

const typical = (group, item) =>
  store.byId
    .get(group)
    .items.filter((one) => one !== item)
    .slice(0, TYPICAL)
    .map((one) => picture(one));

// What a photo is compared with: a heading, photos, and what says that it belongs there.
async function comparisons(item) {
  const now = store.items[item];
  const own = store.groupOf.get(item);
  const places = await getJson(`/api/places?items=${item}`).then(
    (found) => found.places,
    () => [],
  );
  const other = places.find(({ group }) => group !== undefined && group !== own && store.byId.has(group));
  const name = now.known ?? places.find(({ known, probability }) => known && probability)?.known ?? now.nearest;
  const found = [];
  if (own !== undefined)
    found.push({
      text: `Its group: ${printable(title(own))}`,
      photos: typical(own, item),
      label: "It belongs here",
      key: "R",
      go: () => act("confirm", { items: [item] }),
    });
  if (other)
    found.push({
      text: `The nearest other group: ${printable(title(other.group))}, ${percent(other.probability)} likely`,
      photos: typical(other.group, item),
      label: "It belongs there",
      key: "O",
      go: () => act("move", { items: [item], group: other.group }),
    });
  if (pool.known.includes(name))
    found.push({
      text: `${now.known ? "Its" : "The nearest"} known class: ${printable(name)}`,
      photos: ofClass(name).slice(0, TYPICAL),
      label: "It is of this class",
      key: "W",
      go: () => act("known", { items: [item], name }),
    });
  return found;
}

export function lookAt(item, among) {
  const all = among?.length ? [...among] : [item];
  let at = Math.max(0, all.indexOf(item));
  let compared = [];
  const image = el("img", { alt: "", class: "whole" });
  const caption = el("p", { class: "caption", "aria-live": "polite" });
  const beside = el("div", { class: "compare" });
  const mark = button("", () => pick(), { key: "Space" });
  const show = async () => {
    const now = store.items[all[at]];
    image.src = photo(now.id, "full");
    image.alt = baseName(now.path);
    const where = store.groupOf.has(now.id) ? title(store.groupOf.get(now.id)) : (now.known ?? "on its own");
    const sure = now.held ? "✓ settled" : `${percent(now.confidence)} sure`;
    caption.replaceChildren(el("bdi", {}, printable(now.path)), ` · ${printable(where)} · ${sure}`);
    mark.firstChild.textContent = selection.items.has(now.id) ? "Selected" : "Select";
    const found = await comparisons(now.id);
    if (all[at] !== now.id) return; // gone on meanwhile
    compared = found;
    beside.replaceChildren(
      ...found.map((one) =>
        el(
          "section",
          {},
          el("h3", {}, el("bdi", { dir: "auto" }, one.text)),
          el("div", { class: "samples" }, ...one.photos),
          button(one.label, () => done(one.go), { key: one.key }),
        ),
      ),
    );
  };
  const step = (by) => {
    at = (at + by + all.length) % all.length;
    return show();
  };
  const pick = () => {
    pickUp(all[at]);
    mark.firstChild.textContent = selection.items.has(all[at]) ? "Selected" : "Select";
  };
  // After an action comes the next photo.
  const done = async (go) => {
    const before = store.seq;
    await go([all[at]]);
    if (store.seq !== before) await step(1);
  };
  const actions = {
    m: () => done(choosePlace),
    x: () => done((items) => act("reject", { items })),
    k: () => done(chooseKnown),
    arrowright: () => step(1),
    arrowleft: () => step(-1),
    " ": pick,
  };
  show();
  return ask(
    "Photo",
    (close, dialog) => {
      dialog.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const key = event.key.toLowerCase();
        const place = compared.find((one) => one.key.toLowerCase() === key);
        const go = actions[key] ?? (place && (() => done(place.go)));
        if (!go) return;
        event.preventDefault();
        go();
      });
      return [
        el("div", { class: "looking" }, el("div", {}, image, caption), beside),
        buttons(
          button("‹ Before", actions.arrowleft, { disabled: all.length < 2 }),
          button("Next ›", actions.arrowright, { disabled: all.length < 2 }),
          button("Move to…", actions.m, { key: "M" }),
          button("Not this", actions.x, { key: "X" }),
          button("Known class…", actions.k, { key: "K" }),
          mark,
          button("Close", () => close(null), { key: "Esc", autofocus: true }),
        ),
      ];
    },
    { class: "photo", hideTitle: true },
  );
}
