// The question that pays most: where does a photo belong, are two groups one, is a half of a group another kind?

import { act, notify } from "./api.js";
import { baseName, button, byId, el, percent, printable } from "./dom.js";
import { lookAt } from "./look.js";
import { store, title } from "./store.js";
import { ofClass, picture } from "./tiles.js";

const LEAST = 0.2; // photos that an answer must be expected to correct
const SHOWN = 4; // photos of a group or half
const PICKS = ["Y", "U", "I"];
const skipped = new Set();
let key = "";
let folded = false;

const name = (one) => `${one.kind}-${one.a}-${one.b}`;

export const current = () => store.questions.find((one) => one.worth >= LEAST && !skipped.has(name(one))) ?? null;

const place = (item) =>
  printable(store.groupOf.has(item) ? title(store.groupOf.get(item)) : (store.items[item].known ?? "on its own"));

const figure = (photos, caption) =>
  el(
    "figure",
    { class: photos.length > 1 ? "several" : "" },
    ...photos,
    el("figcaption", {}, el("bdi", { dir: "auto" }, caption)),
  );

function side(items, caption, all) {
  const looks = items.slice(0, SHOWN).map((item) =>
    button(picture(item), () => lookAt(item, all), {
      class: "look",
      "aria-label": `Look at ${baseName(store.items[item].path)} in full`,
    }),
  );
  return figure(looks, caption);
}

const members = (item, without = []) =>
  (store.byId.get(store.groupOf.get(item))?.items ?? [item]).filter((one) => !without.includes(one));

// Where the photo is in no group and no class, that is the likeliest.
const alone = (item) => {
  const { kind, confidence } = store.items[item];
  return kind === "alone" ? `${percent(confidence)} on its own, ` : "";
};

const expected = (worth) =>
  worth < 0.8
    ? `About one such answer in ${Math.round(1 / worth)} corrects a photo.`
    : `An answer is expected to correct ${worth.toFixed(1)} photos.`;

// What is asked: its title, what is shown, and the answers with what each does.
const KINDS = {
  which(now) {
    const [first, ...rest] = now.items.length ? now.items : [now.b];
    const all = [now.a, first, ...rest];
    const places = [first, ...rest].map((item) => ({
      name: place(item),
      caption: `as in ${place(item)}`,
      photos: (caption) => side([item], caption, all),
      go: same({ a: item, b: now.a }, true),
    }));
    for (const [rank, name] of now.known)
      places.splice(rank, 0, {
        name: printable(name),
        caption: `known class ${printable(name)}`,
        photos: (caption) => figure(ofClass(name), caption),
        go: () => act("known", { items: [now.a], name }, { clear: false }),
      });
    const chance = (share) => (share < 0.01 ? "under 1\u00a0%" : percent(share));
    const likely = (index) => (now.chances.length ? `, ${chance(now.chances[index])} likely` : "");
    const shown = places.map(({ caption, photos }, index) => photos(caption + likely(index)));
    const none = { others: rest, known: now.known.map(([, name]) => name) };
    return {
      heading: "Which of these is it?",
      sides: [side([now.a], "this photo", all), ...shown],
      answers: [
        ...places.map(({ name, go }, index) => [name, PICKS[index], go]),
        ["None", "D", same({ a: now.a, b: first }, false, none)],
      ],
      guess: `${alone(now.a)}${percent(now.probability)} ${places[0].name}`,
    };
  },
  merge(now) {
    const [one, other] = [members(now.a), members(now.b)];
    return {
      heading: "Are these two groups one?",
      sides: [side(one, place(now.a), one), side(other, place(now.b), other)],
      answers: yesNo("Yes, one kind", same(now, true), "No", same(now, false)),
      guess: `${percent(now.probability)} yes`,
    };
  },
  half(now) {
    const rest = members(now.b, now.items);
    const parts = () => act("split", { group: store.groupOf.get(now.b), parts: [now.items, rest] }, { clear: false });
    return {
      heading: `Is the first half of ${place(now.b)} another kind?`,
      sides: [side(now.items, "these", now.items), side(rest, "the others", rest)],
      answers: yesNo("Yes, split them off", parts, "No, one kind", same(now, true)),
      guess: `${percent(now.probability)} one kind`,
    };
  },
};

const same =
  ({ a, b }, value, more = {}) =>
  () =>
    act("answer", { a, b, same: value, ...more }, { clear: false });

const yesNo = (yes, ifYes, no, ifNo) => [
  [yes, "Y", ifYes],
  [no, "D", ifNo],
];

export function showQuestion() {
  const section = byId("question");
  const now = current();
  section.hidden = !now;
  if (!now) return;
  document.body.classList.add("asks");
  const fresh = JSON.stringify([now, [now.a, now.b, ...now.items].map(place), folded]);
  if (fresh === key && section.childElementCount) return;
  const had = section.contains(document.activeElement) ? document.activeElement.dataset.answer : null;
  key = fresh;
  const { heading, sides, answers, guess } = KINDS[now.kind](now);
  const fold = button(
    folded ? "Show" : "Hide",
    () => {
      folded = !folded;
      showQuestion();
    },
    { class: "bare", "aria-expanded": String(!folded) },
  );
  const head = el("div", { class: "head" }, el("h2", { id: "question-title" }, heading), fold);
  if (folded) return section.replaceChildren(head);
  section.replaceChildren(
    head,
    el("div", { class: "pair" }, ...sides),
    el(
      "div",
      { class: "answers" },
      ...answers.map(([label, letter, go]) =>
        button(label, go, { key: letter, class: "strong", dataset: { answer: letter } }),
      ),
      button("Skip", skip, { key: "P", dataset: { answer: "P" } }),
      el(
        "p",
        { class: "quiet" },
        `The computer’s guess: ${guess}. ${expected(now.worth)}`,
      ),
    ),
  );
  if (had) section.querySelector(`[data-answer="${had}"]`)?.focus({ preventScroll: true });
}

export function answer(letter) {
  const now = current();
  if (!now) return notify("There is no question at the moment.");
  const chosen = KINDS[now.kind](now).answers.find(([, one]) => one === letter);
  return chosen ? chosen[2]() : undefined;
}

export function skip() {
  const now = current();
  if (now) skipped.add(name(now));
  showQuestion();
  if (!current()) notify("That was the last question for now.");
}
