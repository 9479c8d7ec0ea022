// The pool as a map: alike photos lie close together. A lasso selects.

import { button, el, hue } from "./dom.js";
import { lookAt } from "./look.js";
import { photo, picked, pool, selection, store } from "./store.js";

const FACES = 400; // up to so many photos are drawn as such
const images = new Map();
let lasso = true;

export function showMap(view) {
  if (!pool.positions) {
    view.replaceChildren(el("p", { class: "empty" }, "This discovery has no map: discover again to get one."));
    return;
  }
  const canvas = el("canvas", {
    class: "map",
    role: "img",
    "aria-label": "Map of the photos. All that can be done here can be done among the groups, too.",
  });
  const mode = button(
    "Lasso",
    () => {
      lasso = !lasso;
      mode.setAttribute("aria-pressed", String(lasso));
      hint.textContent = hints();
      canvas.classList.toggle("lasso", lasso);
    },
    { id: "lasso", "aria-pressed": String(lasso) },
  );
  const hints = () =>
    lasso ? "Draw around photos to select them; hold Shift to add." : "Click a photo to look at it.";
  const hint = el("span", { class: "quiet" }, hints());
  canvas.classList.toggle("lasso", lasso);
  view.replaceChildren(el("div", { class: "sorting" }, mode, hint), canvas);
  let path = [];
  const size = () => ({ width: canvas.clientWidth, height: canvas.clientHeight });
  const spot = (item) => {
    const [x, y] = pool.positions[item];
    const { width, height } = size();
    const edge = 26;
    return [edge + x * (width - 2 * edge), edge + y * (height - 2 * edge)];
  };
  const style = getComputedStyle(document.documentElement);
  const draw = () => {
    const { width, height } = size();
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const faces = store.items.length <= FACES && width > 500;
    const radius = faces ? 15 : store.items.length > 2000 ? 3 : 6;
    const ink = style.getPropertyValue("--ink");
    const light = style.getPropertyValue("--edge-light") || 0.55;
    for (const one of store.items) {
      const [x, y] = spot(one.id);
      const group = store.groupOf.get(one.id);
      const colour = group === undefined ? style.getPropertyValue("--quiet") : `oklch(${light} .13 ${hue(group)})`;
      const chosen = selection.items.has(one.id);
      pen.beginPath();
      if (faces) {
        const image = face(one.id, draw);
        pen.rect(x - radius, y - radius, 2 * radius, 2 * radius);
        pen.fillStyle = colour;
        pen.fill();
        if (image.complete && image.naturalWidth) {
          const side = Math.min(image.naturalWidth, image.naturalHeight);
          pen.drawImage(
            image,
            (image.naturalWidth - side) / 2,
            (image.naturalHeight - side) / 2,
            side,
            side,
            x - radius,
            y - radius,
            2 * radius,
            2 * radius,
          );
        }
      } else {
        pen.arc(x, y, radius, 0, 7);
        pen.fillStyle = colour;
        pen.fill();
      }
      if (faces || chosen) {
        pen.lineWidth = chosen ? 4 : 2.5;
        pen.strokeStyle = chosen ? ink : colour;
        pen.stroke();
      }
    }
    if (path.length > 1) {
      pen.beginPath();
      path.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      pen.lineWidth = 2;
      pen.setLineDash([6, 4]);
      pen.strokeStyle = ink;
      pen.stroke();
      pen.globalAlpha = 0.08;
      pen.fillStyle = ink;
      pen.fill();
    }
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const nearest = ([x, y]) => {
    let best = null;
    let distance = 20 ** 2;
    for (const one of store.items) {
      const [px, py] = spot(one.id);
      const now = (px - x) ** 2 + (py - y) ** 2;
      if (now < distance) [best, distance] = [one.id, now];
    }
    return best;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!lasso) return;
    canvas.setPointerCapture(event.pointerId);
    path = [at(event)];
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!path.length) return;
    path.push(at(event));
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const drawn = path;
    path = [];
    if (!lasso) {
      const item = nearest(at(event));
      if (item !== null) lookAt(item);
      return;
    }
    if (!event.shiftKey) selection.items.clear();
    if (drawn.length < 5) {
      const item = nearest(at(event));
      if (item !== null) selection.items.add(item);
    } else for (const one of store.items) if (inside(spot(one.id), drawn)) selection.items.add(one.id);
    picked();
  });
  canvas.addEventListener("pointercancel", () => {
    path = [];
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  redraw = draw;
}

let redraw = null;
export const refreshMap = () => redraw?.();

function face(item, then) {
  if (!images.has(item)) {
    const image = new Image();
    image.addEventListener("load", () => requestAnimationFrame(then), { once: true });
    image.src = photo(item);
    images.set(item, image);
  }
  return images.get(item);
}

function inside([x, y], polygon) {
  let within = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i, i += 1) {
    const [ax, ay] = polygon[i];
    const [bx, by] = polygon[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
  }
  return within;
}
