// What can be done with the selected photos and the chosen groups.

import { act, notify } from "./api.js";
import { button, byId, count, el } from "./dom.js";
import { chooseKnown, choosePlace, newGroup } from "./dialogs.js";
import { clearSelection, selection } from "./store.js";

export function bar() {
  const element = byId("bar");
  const items = [...selection.items];
  const groups = [...selection.groups];
  element.hidden = !items.length && !groups.length;
  if (element.hidden) return element.replaceChildren();
  const parts = [];
  if (items.length)
    parts.push(
      el("b", {}, count(items.length, "photo")),
      button("Move to…", () => choosePlace(items), { key: "M", class: "strong" }),
      button("New group", () => newGroup(items), { key: "G" }),
      button("Not this", () => reject(items), { key: "X" }),
      button("Set aside", () => aside(items), { key: "A" }),
      button("Known class…", () => chooseKnown(items), { key: "K" }),
    );
  if (groups.length)
    parts.push(
      el("b", {}, count(groups.length, "group")),
      button("Merge", () => merge(groups), { key: "J", class: "strong", disabled: groups.length < 2 }),
    );
  parts.push(button("Clear", clearSelection, { key: "Esc" }));
  return element.replaceChildren(...parts);
}

export const reject = (items) => act("reject", { items });
export const aside = (items) => act("move", { items, group: null });

export function merge(groups) {
  if (groups.length < 2) return notify("Choose two groups or more: V on each, then J.", { bad: true });
  return act("merge", { groups });
}
