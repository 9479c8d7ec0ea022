"use strict";
(() => {
  for (const element of document.querySelectorAll(".scripted")) element.hidden = false;
  for (const element of document.querySelectorAll(".unscripted")) element.hidden = true;

  // The map. A point is a link to its picture, so it works without all this; here it also previews that picture.
  const follow = (map) => {
    const preview = document.getElementById("preview");
    const points = [...map.querySelectorAll(".point")];
    const picture = (point) => document.getElementById(point.id.replace("point", "picture"));
    let shown = null;

    const hide = () => {
      if (shown) shown.classList.remove("shown");
      shown = null;
      preview.hidden = true;
    };

    const show = (point) => {
      if (point === shown) return;
      hide();
      shown = point;
      point.classList.add("shown");
      const figure = picture(point);
      const image = figure.querySelector("img");
      const [face, name, group, nearest] = preview.children;
      face.src = image.src;
      name.textContent = image.alt;
      group.textContent = `${figure.dataset.belongs} · ${figure.querySelector("figcaption").textContent}`;
      nearest.textContent = figure.dataset.nearest && `Most similar known class: ${figure.dataset.nearest}`;
      preview.hidden = false;
      place(point);
    };

    // Beside the point: above it where there is room, and never out of the map to the left or right.
    const place = (point) => {
      const frame = map.getBoundingClientRect();
      const spot = point.querySelector("circle").getBoundingClientRect();
      const gap = 8;
      const left = spot.left + spot.width / 2 - frame.left - preview.offsetWidth / 2;
      const above = spot.top - preview.offsetHeight - gap;
      preview.style.left = `${Math.max(4, Math.min(left, frame.width - preview.offsetWidth - 4))}px`;
      preview.style.top = `${(above > 0 ? above : spot.bottom + gap) - frame.top}px`;
    };

    const pointOf = (event) => event.target.closest?.(".point");
    map.addEventListener("pointerover", (event) => {
      if (event.pointerType === "touch") return;
      const point = pointOf(event);
      if (point) show(point);
      else hide();
    });
    map.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") hide();
    });
    map.addEventListener("focusin", (event) => {
      const point = pointOf(event);
      if (!point) return;
      rove(point);
      if (point.matches(":focus-visible")) show(point);
    });
    map.addEventListener("focusout", hide);
    addEventListener("resize", hide);

    // A finger cannot hover: its first tap shows a picture, its second follows the link.
    let before = null;
    map.addEventListener("pointerdown", () => { before = shown; });
    map.addEventListener("click", (event) => {
      const point = pointOf(event);
      if (!point) hide();
      else if (event.pointerType === "touch" && before !== point) {
        event.preventDefault();
        show(point);
      }
    });

    // One stop of the Tab key for the whole map. Arrows go to the nearest point on that side; as they may miss points
    // that lie on each other, the page keys take all of them in turn.
    const rove = (current) => {
      for (const point of points) point.tabIndex = point === current ? 0 : -1;
    };
    const middle = (point) => {
      const { e, f } = point.transform.baseVal.consolidate().matrix;
      return [e, f];
    };
    const arrows = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const towards = (from, [dx, dy]) => {
      const [x, y] = middle(from);
      let nearest = null;
      let least = Infinity;
      for (const point of points) {
        const [px, py] = middle(point);
        const along = (px - x) * dx + (py - y) * dy;
        const aside = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
        if (along > 0 && along + 2 * aside < least) [nearest, least] = [point, along + 2 * aside];
      }
      return nearest;
    };
    map.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
      const point = pointOf(event);
      const turn = { PageDown: 1, PageUp: -1 }[event.key];
      if (!point || !(turn || event.key in arrows)) return;
      event.preventDefault();
      const next = turn ? points[points.indexOf(point) + turn] : towards(point, arrows[event.key]);
      next?.focus();
    });
    if (points.length) rove(points[0]);

    // Pictures in place of numbers, made when first asked for; they share the bytes of the thumbnails above.
    document.getElementById("faces").addEventListener("change", (event) => {
      map.classList.toggle("faces", event.target.checked);
      for (const point of points) {
        point.querySelector("image")?.remove();
        if (!event.target.checked) continue;
        const image = document.createElementNS("http://www.w3.org/2000/svg", "image");
        image.setAttribute("preserveAspectRatio", "xMidYMid slice");
        image.setAttribute("href", picture(point).querySelector("img").src);
        point.append(image);
      }
    });
  };
  const map = document.querySelector(".map");
  if (map) follow(map);

  // Pictures enlarge at a click; with a keyboard, one by one.
  const pictures = [...document.querySelectorAll(".picture")];
  const large = document.getElementById("large");
  let at = 0;
  const enlarge = (place) => {
    at = (place + pictures.length) % pictures.length;
    const image = pictures[at].querySelector("img");
    const [face, name, belongs] = large.children;
    face.src = image.src;
    face.alt = name.textContent = image.alt;
    belongs.textContent = `${pictures[at].dataset.belongs} · ${pictures[at].querySelector("figcaption").textContent}`;
    if (!large.open) large.showModal();
  };
  document.querySelector("main").addEventListener("click", (event) => {
    if (event.target.matches(".picture img")) enlarge(pictures.indexOf(event.target.closest(".picture")));
  });
  document.getElementById("look")?.addEventListener("click", () => enlarge(at));
  large.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) enlarge(at + step);
  });
  large.addEventListener("click", (event) => {
    const step = event.target.dataset.step;
    if (step) enlarge(at + Number(step));
    else if (event.target === large || event.target.matches("button")) large.close();
  });

  // The command. Where the browser does not give a page from a file its clipboard, the command is selected instead.
  document.getElementById("copy").addEventListener("click", async () => {
    const command = document.getElementById("command");
    const status = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(command.textContent);
      status.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(command);
      status.textContent = "Selected: press Ctrl+C to copy.";
    }
  });
})();
