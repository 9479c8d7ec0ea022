// Dialogs: name, split with a preview, where to, known class, accept.

import { act, getJson, notify } from "./api.js";
import { ask, button, buttons, confirm, count, el, hue, isDoubtful, percent, printable } from "./dom.js";
import { others, pool, store, title } from "./store.js";
import { picture, visibleTiles } from "./tiles.js";

export { checkGroup } from "./check.js";

// A name with type-ahead, known classes first; null where nobody gave one.
function askName(heading, items, { value = "", label, hint = "", save }) {
  const names = new Set([...pool.known, ...store.groups.map((one) => one.name).filter(Boolean)]);
  return ask(heading, (close) => [
    el(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          close(event.target.elements.name.value.trim());
        },
      },
      el("div", { class: "samples" }, ...items.slice(0, 6).map((item) => picture(item))),
      el("label", { for: "name" }, label),
      el("input", {
        id: "name",
        type: "text",
        list: "names",
        maxlength: "200",
        autocomplete: "off",
        dir: "auto",
        autofocus: true,
        value,
      }),
      el("datalist", { id: "names" }, ...[...names].map((one) => el("option", { value: one }))),
      hint ? el("p", { class: "quiet" }, hint) : null,
      buttons(
        el("button", { type: "submit", class: "strong" }, save),
        button("Cancel", () => close(null)),
      ),
    ),
  ]);
}

// The group and the known class that have a name already.
function taken(name, but = null) {
  const same = (one) => name !== "" && one?.toLocaleLowerCase() === name.toLocaleLowerCase();
  return { twin: store.groups.find((one) => one.id !== but && same(one.name)), known: pool.known.find(same) };
}

// A name that is taken offers what was probably meant.
export async function nameGroup(group) {
  const now = store.byId.get(group);
  if (!now) return;
  const card = document.querySelector(`.card[data-group="${group}"]`);
  const shown = card ? visibleTiles(card).map((one) => Number(one.dataset.item)) : now.items;
  const stay = shown.length < now.items.length ? `The ${count(shown.length, "photo")} that the card shows` : "Its photos";
  const name = await askName(`Name group ${group}`, now.items, {
    value: now.name ?? "",
    label: "What is it?",
    hint: `${stay} will stay in it. Leave it empty to take the name away.`,
    save: "Save",
  });
  if (name === null || name === (now.name ?? "")) return;
  const { twin, known } = taken(name, group);
  const called = twin && `Group ${twin.id} is called “${printable(twin.name)}” too. Are they one?`;
  const photos = `“${printable(known ?? "")}” is a known class. Are these ${count(now.items.length, "photo")} of it?`;
  const one = twin ? await confirm("That name is taken", called, "Merge them", "Keep both") : false;
  if (one === null) return; // the question was left
  if (one) return act("merge", { groups: [twin.id, group] });
  const its = known ? await confirm("A class you know", photos, "Mark them as it", "Only name the group") : false;
  if (its === null) return;
  if (its) return act("known", { items: now.items, name: known });
  return act("name", { group, name, items: shown });
}

// Photos become a group of their own; a name that is taken, or known, says that they are no new one.
export async function newGroup(items, typed = null) {
  const heading = `New group of ${count(items.length, "photo")}`;
  const label = "What is it? It may stay without a name.";
  const name = typed ?? (await askName(heading, items, { label, save: "Make it" }));
  if (name === null) return;
  const { twin, known } = taken(name);
  if (twin) await act("move", { items, group: twin.id });
  else if (known) await act("known", { items, name: known });
  else if (await act("group", { items, name }))
    document.dispatchEvent(new CustomEvent("reveal", { detail: store.groupOf.get(items[0]) }));
}

export async function splitGroup(group) {
  const now = store.byId.get(group);
  if (!now || now.items.length < 2) return;
  const most = Math.min(now.items.length, 12);
  let parts = 2;
  const preview = el("div", { class: "parts", "aria-live": "polite" });
  const choice = el("div", { class: "numbers", role: "group", "aria-label": "Parts" });
  const show = async (wanted) => {
    parts = wanted;
    for (const one of choice.children) {
      one.setAttribute("aria-pressed", String(Number(one.textContent) === parts));
      if (Number(one.textContent) === parts && choice.contains(document.activeElement)) one.focus();
    }
    preview.replaceChildren(el("p", { class: "quiet" }, "Looking…"));
    try {
      const found = await getJson(`/api/split?group=${group}&parts=${wanted}`);
      if (wanted !== parts) return;
      preview.replaceChildren(
        ...found.parts.map((items, index) =>
          el(
            "section",
            {},
            el("h3", {}, `Part ${index + 1}: ${count(items.length, "photo")}`),
            el(
              "div",
              { class: "samples" },
              ...items.slice(0, 14).map((item) => picture(item)),
              items.length > 14 ? `+ ${items.length - 14}` : "",
            ),
          ),
        ),
      );
    } catch (error) {
      preview.replaceChildren(el("p", {}, error.message));
    }
  };
  for (let number = 2; number <= most; number += 1)
    choice.append(button(String(number), () => show(number), { autofocus: number === 2 }));
  show(2);
  const go = await ask(
    `Split ${printable(title(group))}`,
    (close, dialog) => {
      dialog.addEventListener("keydown", (event) => {
        const digit = Number(event.key);
        if (digit >= 2 && digit <= most) show(digit);
        else if (event.key === "Enter" && choice.contains(event.target)) close(true);
        else return;
        event.preventDefault();
      });
      return [
        el("p", {}, "Into how many parts?"),
        choice,
        preview,
        buttons(
          button("Split", () => close(true), { class: "strong", key: "Enter" }),
          button("Cancel", () => close(null)),
        ),
      ];
    },
    { class: "wide" },
  );
  if (go) await act("split", { group, parts });
}

// A list that is filtered as one types; arrows and Enter choose. What is typed may itself be a choice.
function choose(heading, options, asTyped = () => []) {
  return ask(heading, (close) => {
    const input = el("input", {
      type: "search",
      id: "filter",
      autofocus: true,
      autocomplete: "off",
      role: "combobox",
      "aria-controls": "options",
      "aria-expanded": "true",
      dir: "auto",
    });
    const list = el("ul", { id: "options", role: "listbox", "aria-label": heading });
    let at = 0;
    let shown = [];
    const mark = () => {
      [...list.children].forEach((one, index) => one.setAttribute("aria-selected", String(index === at)));
      const now = list.children[at];
      if (now) input.setAttribute("aria-activedescendant", now.id);
      now?.scrollIntoView({ block: "nearest" });
    };
    const fill = () => {
      const text = input.value.trim().toLocaleLowerCase();
      shown = options.filter((one) => one.label.toLocaleLowerCase().includes(text)).slice(0, 200);
      const taken = shown.some((one) => one.label.toLocaleLowerCase() === text);
      if (text && !taken) shown.push(...asTyped(input.value.trim()));
      at = 0;
      list.replaceChildren(
        ...shown.map((one, index) =>
          el(
            "li",
            { id: `option-${index}`, role: "option", hue: one.hue, onclick: () => close(one.value) },
            one.item === undefined ? el("span", { class: "sign", "aria-hidden": "true" }, one.sign) : picture(one.item),
            el("span", {}, el("bdi", { dir: "auto" }, one.label), el("small", {}, one.more)),
          ),
        ),
      );
      mark();
    };
    input.addEventListener("input", fill);
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") at = Math.min(at + 1, shown.length - 1);
      else if (event.key === "ArrowUp") at = Math.max(at - 1, 0);
      else if (event.key === "Enter") close(shown[at]?.value ?? null);
      else return;
      event.preventDefault();
      mark();
    });
    fill();
    return [
      el("label", { for: "filter", class: "unseen" }, "Filter"),
      input,
      list,
      buttons(button("Cancel", () => close(null))),
    ];
  });
}

// Where photos belong, the likeliest place first.
async function likelyPlaces(items) {
  try {
    const some = items.slice(0, 50).map((item) => `items=${item}`);
    const { places } = await getJson(`/api/places?${some.join("&")}`);
    return new Map(places.map(({ group, known, probability }) => [known ?? group, probability]));
  } catch {
    return new Map(); // groups come as the cards stand
  }
}

export async function choosePlace(items, { onlyKnown = false } = {}) {
  if (!items.length) return;
  if (onlyKnown && !pool.known.length) return notify("There are no known classes.", { bad: true });
  const chance = await likelyPlaces(items);
  const where = (key, text) => (chance.get(key) ? `${text} · ${percent(chance.get(key))} likely` : text);
  const have = others().known;
  const groups = store.order.map((id) => ({
    key: id,
    value: { group: id },
    label: printable(title(id)),
    more: where(id, count(store.byId.get(id).items.length, "photo")),
    item: store.byId.get(id).items[0],
    hue: hue(id),
  }));
  const classes = pool.known.map((name) => ({
    key: name,
    value: { name },
    label: printable(name),
    more: where(name, "known class"),
    item: have.get(name)?.[0],
    sign: "★",
  }));
  const fresh = { value: { fresh: null }, label: "New group", more: "of these photos", sign: "+" };
  const none = { value: { group: null }, label: "No group", more: "set them aside", sign: "–" };
  const options = onlyKnown ? classes : [...groups, fresh, none, ...classes];
  options.sort((a, b) => (chance.get(b.key) ?? 0) - (chance.get(a.key) ?? 0));
  const asked = items.length === 1 ? "Where does this photo belong?" : `Where do these ${items.length} photos belong?`;
  const typed = (text) => [
    { value: { fresh: text }, label: printable(text), more: "a new group of that name", sign: "+" },
  ];
  const place = await choose(onlyKnown ? "Which known class?" : asked, options, onlyKnown ? undefined : typed);
  if (!place) return;
  if (place.fresh !== undefined) await newGroup(items, place.fresh);
  else if (place.name !== undefined) await act("known", { items, name: place.name });
  else await act("move", { items, group: place.group });
}

export const chooseKnown = (items) => choosePlace(items, { onlyKnown: true });

export async function accept(groups) {
  const ready = store.groups.filter((one) => one.name && (!groups || groups.includes(one.id)));
  const waiting = ready
    .map((one) => [one, one.items.filter((item) => store.items[item].accepted !== one.name).length])
    .filter(([, size]) => size);
  const marked = groups ? [] : store.items.filter((item) => item.known && item.held && item.accepted !== item.known);
  if (!waiting.length && !marked.length)
    return notify("Name a group first: then its photos can be accepted.", { bad: true });
  const unaccepted = waiting.flatMap(([one]) => one.items.filter((item) => store.items[item].accepted !== one.name));
  const doubtful = unaccepted.filter((item) => isDoubtful(store.items[item])).length;
  const settled = unaccepted.length + marked.length - doubtful;
  const go = await ask("Make them known classes", (close) => [
    el(
      "p",
      {},
      "Copies of these photos go into folders of ",
      el("bdi", {}, printable(pool.into)),
      ". The next discovery of this pool leaves them out.",
    ),
    el(
      "ul",
      { class: "list" },
      ...waiting.map(([one, size]) =>
        el("li", {}, el("bdi", { dir: "auto" }, printable(one.name)), `: ${count(size, "photo")}`),
      ),
      marked.length ? el("li", {}, `${count(marked.length, "photo")} that you marked as known classes`) : null,
    ),
    doubtful ? el("p", {}, `${count(doubtful, "photo")} of them doubtful: leave those out?`) : null,
    buttons(
      settled
        ? button(doubtful ? `Accept ${settled}, leave ${doubtful} out` : "Accept", () => close("settled"), {
            class: "strong",
            autofocus: true,
          })
        : null,
      doubtful ? button(settled ? "Accept all" : "Accept them all the same", () => close("all")) : null,
      button("Cancel", () => close(null)),
    ),
  ]);
  if (go) await act("accept", { ...(groups ? { groups } : {}), ...(go === "all" ? { doubtful: true } : {}) });
}
