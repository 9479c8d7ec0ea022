// Dialogs: name, split with a preview, where to, known class, accept.

import { act, getJson, notify } from "./api.js";
import { ask, button, buttons, confirm, count, el, hue, isDoubtful, percent, printable } from "./dom.js";
import { others, pool, store, title } from "./store.js";
import { picture, visibleTiles } from "./tiles.js";

export { checkGroup } from "./check.js";

function nameInput(value = "") {
  const input = el("input", {
    id: "name",
    type: "text",
    list: "names",
    maxlength: "200",
    autocomplete: "off",
    dir: "auto",
    autofocus: true,
  });
  input.value = value;
  return input;
}

function knownNames() {
  const names = new Set([...pool.known, ...store.groups.map((one) => one.name).filter(Boolean)]);
  return el("datalist", { id: "names" }, ...[...names].map((one) => el("option", { value: one })));
}

// A name with type-ahead, known classes first; one that is taken offers what was probably meant.
export async function nameGroup(group) {
  const now = store.byId.get(group);
  if (!now) return;
  const card = document.querySelector(`.card[data-group="${group}"]`);
  const shown = card ? visibleTiles(card).map((one) => Number(one.dataset.item)) : now.items;
  const name = await ask(`Name group ${group}`, (close) => {
    const input = nameInput(now.name ?? "");
    const form = el(
      "form",
      {
        method: "dialog",
        onsubmit: (event) => {
          event.preventDefault();
          close(input.value.trim());
        },
      },
      el("div", { class: "samples" }, ...now.items.slice(0, 6).map((item) => picture(item))),
      el("label", { for: "name" }, "What is it?"),
      input,
      knownNames(),
      el(
        "p",
        { class: "quiet" },
        shown.length < now.items.length
          ? `The ${count(shown.length, "photo")} that the card shows will stay in it. `
          : "Its photos will stay in it. ",
        "Leave it empty to take the name away.",
      ),
      buttons(
        el("button", { type: "submit", class: "strong" }, "Save"),
        button("Cancel", () => close(null)),
      ),
    );
    return [form];
  });
  if (name === null || name === (now.name ?? "")) return;
  const same = (one) => one.toLocaleLowerCase() === name.toLocaleLowerCase();
  const twin = store.groups.find((one) => one.id !== group && one.name && same(one.name));
  const known = pool.known.find(same);
  if (name && twin) {
    const one = await confirm(
      "That name is taken",
      `Group ${twin.id} is called “${printable(twin.name)}” too. Are they one?`,
      "Merge them",
      "Keep both",
    );
    if (one === null) return;
    if (one) return act("merge", { groups: [twin.id, group] });
  }
  if (name && known) {
    const its = await confirm(
      "A class you know",
      `“${printable(known)}” is a known class. Are these ${count(now.items.length, "photo")} of it?`,
      "Mark them as it",
      "Only name the group",
    );
    if (its === null) return;
    if (its) return act("known", { items: now.items, name: known });
  }
  await act("name", { group, name, items: shown });
}

// Photos become a group of their own; a name that is taken, or known, says that they are no new one.
export async function newGroup(items, typed = null) {
  const name =
    typed ??
    (await ask(`New group of ${count(items.length, "photo")}`, (close) => {
      const input = nameInput();
      return [
        el(
          "form",
          {
            onsubmit: (event) => {
              event.preventDefault();
              close(input.value.trim());
            },
          },
          el("div", { class: "samples" }, ...items.slice(0, 6).map((item) => picture(item))),
          el("label", { for: "name" }, "What is it? It may stay without a name."),
          input,
          knownNames(),
          buttons(
            el("button", { type: "submit", class: "strong" }, "Make it"),
            button("Cancel", () => close(null)),
          ),
        ),
      ];
    }));
  if (name === null) return;
  const same = (one) => one?.toLocaleLowerCase() === name.toLocaleLowerCase();
  const twin = name && store.groups.find((one) => same(one.name));
  const known = name && pool.known.find(same);
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

export async function choosePlace(items) {
  if (!items.length) return;
  let likely = [];
  try {
    const some = items.slice(0, 50).map((item) => `items=${item}`);
    likely = (await getJson(`/api/places?${some.join("&")}`)).places;
  } catch {
    // Without it, groups come as the cards stand.
  }
  const chance = new Map(likely.map(({ group, known, probability }) => [known ?? group, probability]));
  const where = (key, text) => (chance.get(key) ? `${text} · ${percent(chance.get(key))} likely` : text);
  const have = others().known;
  const options = [
    ...store.order.map((id) => ({
      key: id,
      value: { group: id },
      label: printable(title(id)),
      more: where(id, count(store.byId.get(id).items.length, "photo")),
      item: store.byId.get(id).items[0],
      hue: hue(id),
    })),
    { value: { fresh: null }, label: "New group", more: "of these photos", sign: "+" },
    { value: { aside: true }, label: "No group", more: "set them aside", sign: "–" },
    ...pool.known.map((name) => ({
      key: name,
      value: { name },
      label: printable(name),
      more: where(name, "known class"),
      item: have.get(name)?.[0],
      sign: "★",
    })),
  ];
  options.sort((a, b) => (chance.get(b.key) ?? 0) - (chance.get(a.key) ?? 0));
  const asked = items.length === 1 ? "Where does this photo belong?" : `Where do these ${items.length} photos belong?`;
  const place = await choose(asked, options, (text) => [
    { value: { fresh: text }, label: printable(text), more: "a new group of that name", sign: "+" },
  ]);
  if (!place) return;
  if (place.fresh !== undefined) await newGroup(items, place.fresh);
  else if (place.aside) await act("move", { items, group: null });
  else if (place.name !== undefined) await act("known", { items, name: place.name });
  else await act("move", { items, group: place.group });
}

export async function chooseKnown(items) {
  if (!items.length) return;
  if (!pool.known.length) return notify("There are no known classes.", { bad: true });
  const near = items.map((item) => store.items[item].nearest).filter(Boolean);
  const first = (name) => -near.filter((one) => one === name).length;
  const names = [...pool.known].sort((a, b) => first(a) - first(b) || a.localeCompare(b));
  const have = others().known;
  const name = await choose(
    "Which known class?",
    names.map((one) => ({
      value: { one },
      label: printable(one),
      more: first(one) ? "the most similar" : "",
      item: have.get(one)?.[0],
      sign: "★",
    })),
  );
  if (name) await act("known", { items, name: name.one });
}

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
