// What the server last said, and what is selected. Everything shown follows from these.

export const pool = { folder: "", known: [], into: "", live: true, closed: "", version: "", copies: {}, order: [], positions: null };

export const store = {
  seq: -1,
  groups: [],
  items: [],
  question: null,
  questions: [],
  note: null,
  undo: "",
  redo: "",
  groupOf: new Map(), // item → group
  byId: new Map(), // group number → group
  sorting: "doubt",
  order: [], // group numbers as the cards stand
  fresh: [], // groups that the last action made
  moved: new Set(), // items that the last action moved
  inUse: null, // the group that a person was in last
};

export const selection = { items: new Set(), groups: new Set() };

const listeners = [];
export const onChange = (listener) => listeners.push(listener);
export const changed = () => listeners.forEach((listener) => listener());
const pickers = [];
export const onPick = (listener) => pickers.push(listener); // only what is selected changed
export const picked = () => pickers.forEach((listener) => listener());

export function take(state, undo, redo) {
  Object.assign(store, state, { undo, redo });
  store.groupOf = new Map();
  store.byId = new Map();
  for (const group of store.groups) {
    group.items.sort((a, b) => store.items[b].confidence - store.items[a].confidence || a - b);
    store.byId.set(group.id, group);
    for (const item of group.items) store.groupOf.set(item, group.id);
  }
  store.moved = new Set(store.note?.moved ?? []);
  arrange();
  for (const item of selection.items) if (!store.items[item]) selection.items.delete(item);
  for (const id of selection.groups) if (!store.byId.has(id)) selection.groups.delete(id);
  changed();
}

const ORDERS = {
  doubt: (a, b) => a.confidence - b.confidence,
  size: (a, b) => b.items.length - a.items.length,
  name: (a, b) => (a.name ?? "\uffff").localeCompare(b.name ?? "\uffff"),
};

const sorted = (groups) =>
  [...groups].sort((a, b) => ORDERS[store.sorting](a, b) || a.id - b.id).map((group) => group.id);

// Cards keep their places while a person works. New ones come behind the one in use; finished ones go last, once they
// are left.
function arrange() {
  const shown = new Set(store.order);
  const stay = store.order.filter((id) => store.byId.has(id));
  const fresh = sorted(store.groups.filter((group) => !shown.has(group.id)));
  stay.splice(stay.indexOf(store.inUse) + 1, 0, ...fresh);
  store.fresh = shown.size ? fresh : [];
  const last = (id) => store.byId.get(id).finished === true && id !== store.inUse && !store.fresh.includes(id);
  store.order = [...stay.filter((id) => !last(id)), ...stay.filter(last)];
}

export function sortBy(chosen) {
  store.sorting = chosen;
  store.order = sorted(store.groups);
  arrange();
  changed();
}

export const title = (id) => store.byId.get(id)?.name ?? `Group ${id}`;

// Photos of each known class, and photos on their own.
export function others() {
  const known = new Map();
  const alone = [];
  for (const item of store.items) {
    if (item.kind === "alone") alone.push(item.id);
    else if (item.kind === "known") {
      if (!known.has(item.known)) known.set(item.known, []);
      known.get(item.known).push(item.id);
    }
  }
  for (const items of known.values()) items.sort((a, b) => store.items[b].confidence - store.items[a].confidence);
  return { known: new Map([...known].sort(([a], [b]) => a.localeCompare(b))), alone };
}

export function toggle(set, value, on = !set.has(value)) {
  if (on) set.add(value);
  else set.delete(value);
}

export function clearSelection() {
  selection.items.clear();
  selection.groups.clear();
  picked();
}

export const photo = (item, size = "thumb") => `/photo/${item}?size=${size}&v=${pool.version}`;
