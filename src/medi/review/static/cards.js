// The groups as cards, in order of doubt; then known classes and photos on their own.

import { act, notify } from "./api.js";
import { button, count, el, hue, isDoubtful, percent, printable } from "./dom.js";
import { accept, checkGroup, nameGroup, splitGroup } from "./dialogs.js";
import { lookAt } from "./look.js";
import { changed, others, picked, selection, sortBy, store, title, toggle } from "./store.js";
import { picture, tile, visibleTiles } from "./tiles.js";

const FEW = 18;
const CARDS = 40;
const opened = new Set(); // cards that show all their photos
let shownCards = CARDS;

export function showGroups(view) {
  const { known, alone } = others();
  const cards = store.order.slice(0, shownCards).map((id) => groupCard(store.byId.get(id)));
  const parts = [toolbar(), el("div", { class: "cards" }, ...cards)];
  if (store.order.length > shownCards) {
    const rest = count(store.order.length - shownCards, "more group");
    const more = button(
      `Show ${rest}`,
      () => {
        shownCards += CARDS;
        changed();
      },
      { class: "more" },
    );
    parts.push(more);
    new IntersectionObserver(
      (entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        shownCards += CARDS;
        changed();
      },
      { rootMargin: "1000px" },
    ).observe(more);
  }
  if (!store.groups.length)
    parts.push(el("p", { class: "empty" }, "No group is left. Undo, or make one of photos below."));
  if (known.size) {
    parts.push(
      el("h2", {}, "Known classes"),
      el(
        "p",
        { class: "quiet" },
        "Photos that look like classes you know. Reject those that do not belong; the others are all right. ",
        allRightButton([...known.values()].flat(), "All of them are right"),
      ),
    );
    parts.push(
      el("div", { class: "cards" }, ...[...known].map(([name, items]) => otherCard(`known:${name}`, name, items))),
    );
  }
  if (alone.length) {
    parts.push(
      el("h2", {}, "On their own"),
      el("p", { class: "quiet" }, "Photos that resemble nothing else, and those you set aside."),
    );
    parts.push(el("div", { class: "cards" }, otherCard("alone", "", alone)));
  }
  view.replaceChildren(...parts);
}

function toolbar() {
  const select = el("select", { id: "order", onchange: (event) => sortBy(event.target.value) });
  for (const [value, label] of [
    ["doubt", "most doubtful first"],
    ["size", "largest first"],
    ["name", "by name"],
  ])
    select.append(el("option", { value, selected: value === store.sorting }, label));
  return el(
    "div",
    { class: "sorting" },
    el("label", { for: "order" }, "Groups, "),
    select,
    el("span", { class: "quiet" }, " ✓ is what you settled; dashed photos are doubtful. A group’s number is its key."),
  );
}

function photos(key, items) {
  const all = opened.has(key) || items.length <= FEW + 2;
  const shown = all ? items : items.slice(0, FEW);
  const grid = el("div", { class: "tiles", role: "group", "aria-label": "Photos" }, ...shown.map(tile));
  if (!all)
    grid.append(
      button(
        `All ${items.length}`,
        () => {
          opened.add(key);
          changed();
        },
        { class: "all", "aria-label": `Show all ${items.length} photos` },
      ),
    );
  return grid;
}

function groupCard(group) {
  const number = group.id;
  const doubtful = group.items.filter((item) => isDoubtful(store.items[item])).length;
  const chosen = selection.groups.has(number);
  const waiting = group.items.filter((item) => store.items[item].accepted === undefined).length;
  const heading = el(
    "h3",
    { id: `group-${number}-title` },
    el(
      "span",
      { class: "badge", title: `Group ${number}: key ${number} moves photos here` },
      el("span", { class: "unseen" }, "Group "),
      String(number),
    ),
    group.name
      ? el("bdi", { class: "name", dir: "auto" }, printable(group.name))
      : el("span", { class: "name unnamed" }, "no name yet"),
  );
  return el(
    "article",
    {
      class: `card${chosen ? " chosen" : ""}`,
      hue: hue(number),
      dataset: { group: number },
      "aria-labelledby": `group-${number}-title`,
      tabindex: "-1",
    },
    el(
      "header",
      {},
      heading,
      el(
        "p",
        { class: "facts" },
        `${count(group.items.length, "photo")} · `,
        isSettled(group.items) ? "✓ settled" : `${percent(group.confidence)} sure`,
        doubtful ? ` · ${doubtful} doubtful` : "",
      ),
      el(
        "div",
        { class: "card-tools" },
        button(group.name ? "Rename" : "Name", () => nameGroup(number), {
          key: "N",
          "aria-describedby": `group-${number}-title`,
        }),
        allRightButton(group.items),
        button("Check", () => checkGroup(number), { key: "C", title: "Confirm its photos page by page" }),
        button("Split", () => splitGroup(number), { key: "S", disabled: group.items.length < 2 }),
        button(
          chosen ? "Chosen" : "Choose",
          () => {
            toggle(selection.groups, number);
            picked();
          },
          { key: "V", "aria-pressed": String(chosen), title: "Choose groups to merge them" },
        ),
        group.name && waiting ? button("Accept", () => accept([number]), { key: "E" }) : null,
        group.name && !waiting ? el("span", { class: "done" }, "accepted") : null,
      ),
    ),
    photos(number, group.items),
    ...(group.offers ?? []).map((offer) => offered(group, offer)),
  );
}

// What may belong here, or rather elsewhere: taken with one key, or left.
function offered(group, offer) {
  const { length } = offer.items;
  const here = offer.group === group.id;
  const other = offer.known ?? (here ? "" : title(offer.group));
  const text = here
    ? `${length} more may belong here`
    : `${length} here ${length === 1 ? "looks" : "look"} more like ${printable(other)}`;
  return el(
    "section",
    { class: "offer", "aria-label": text },
    el("p", {}, text),
    el(
      "div",
      { class: "samples" },
      ...offer.items
        .slice(0, FEW)
        .map((item) =>
          button(picture(item, { loading: "lazy" }), () => lookAt(item, offer.items), {
            class: "look",
            "aria-label": "Look at it in full",
          }),
        ),
    ),
    button(here ? "Take" : "Move there", () => takeOffer(group.id, offer), { key: "O", class: "strong" }),
    button(here ? "Not here" : "Leave here", () => leaveOffer(group.id, offer), { key: "L" }),
  );
}

const isSettled = (items) => items.every((item) => store.items[item].held);
const firstOffer = (group) => store.byId.get(group)?.offers?.[0];
const noOffer = () => notify("Nothing is offered beside this group.", { bad: true });

export function takeOffer(group, offer = firstOffer(group)) {
  if (!offer) return noOffer();
  const { items, known } = offer;
  return known ? act("known", { items, name: known }) : act("move", { items, group: offer.group });
}

export function leaveOffer(group, offer = firstOffer(group)) {
  if (!offer) return noOffer();
  const { items } = offer;
  return offer.group === group ? act("check", { group, yes: [], no: items }) : act("confirm", { items });
}

function allRightButton(items, label = "All right") {
  const open = items.filter((item) => !store.items[item].held);
  if (!open.length) return null;
  return button(label, (event) => allRight(event.target.closest(".card"), open), {
    key: label === "All right" ? "R" : null,
    title: `Say that these ${count(open.length, "photo")} are right where they are`,
  });
}

// The photos that a card shows belong there; those that it hides were not seen.
export function allRight(card, items = store.items.map((one) => one.id)) {
  const shown = card ? new Set(seenIn(card)) : null;
  const open = items.filter((item) => (shown?.has(item) ?? true) && !store.items[item].held);
  if (!open.length) return notify("These are settled already.");
  return act("confirm", { items: open });
}

export const seenIn = (card) => visibleTiles(card).map((one) => Number(one.dataset.item));

// The card of a group, or of a known class.
export const cardOf = (view, { group, other }) =>
  view.querySelector(
    group === undefined ? `.card[data-other="${CSS.escape(other)}"]` : `.card[data-group="${CSS.escape(group)}"]`,
  );

function otherCard(key, name, items) {
  return el(
    "article",
    { class: "card other", dataset: { other: key }, tabindex: "-1" },
    name
      ? el(
          "header",
          {},
          el("h3", {}, el("bdi", { class: "name", dir: "auto" }, printable(name))),
          el(
            "p",
            { class: "facts" },
            count(items.length, "photo"),
            isSettled(items) ? " · ✓ settled" : "",
          ),
          el("div", { class: "card-tools" }, allRightButton(items)),
        )
      : null,
    photos(key, items),
  );
}

export function dropInto(view) {
  let over = null;
  const target = (event) => event.target.closest?.(".card[data-group]");
  view.addEventListener("dragstart", (event) => {
    const item = Number(event.target.closest?.(".tile")?.dataset.item);
    if (Number.isNaN(item)) return;
    const items = selection.items.has(item) ? [...selection.items] : [item];
    event.dataTransfer.setData("application/x-medi", JSON.stringify(items));
    event.dataTransfer.effectAllowed = "move";
  });
  view.addEventListener("dragover", (event) => {
    const card = target(event);
    if (!card || !event.dataTransfer.types.includes("application/x-medi")) return;
    event.preventDefault();
    over?.classList.remove("over");
    over = card;
    card.classList.add("over");
  });
  view.addEventListener("dragend", () => over?.classList.remove("over"));
  view.addEventListener("drop", (event) => {
    const card = target(event);
    over?.classList.remove("over");
    if (!card) return;
    event.preventDefault();
    act("move", {
      items: JSON.parse(event.dataTransfer.getData("application/x-medi")),
      group: Number(card.dataset.group),
    });
  });
}

export const refreshChoice = (view) => {
  for (const card of view.querySelectorAll(".card[data-group]")) {
    const chosen = selection.groups.has(Number(card.dataset.group));
    card.classList.toggle("chosen", chosen);
    const control = card.querySelector("[aria-pressed]:not(.pick)");
    if (control) {
      control.setAttribute("aria-pressed", String(chosen));
      control.firstChild.textContent = chosen ? "Chosen" : "Choose";
    }
  }
};
