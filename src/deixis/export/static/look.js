// The look that the page of `deixis serve` and pages written to files share: colours of things, where they are in
// words, boxes over a picture, sentences whose words point. Colours are those of deixis/export/draw.py.

export const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442"];
export const SVG = "http://www.w3.org/2000/svg";

/** A share in words; the space does not break, so that no line begins with the sign. */
export const percent = (value) => `${Math.round(100 * value)}\u00a0%`;

export function colourOf(number) {
  return { colour: PALETTE[number % PALETTE.length], dashed: Math.floor(number / PALETTE.length) % 2 === 1 };
}

/** Black or white, whichever reads better on a colour (WCAG's contrast ratio). */
export function inkOn(colour) {
  const linear = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}

export function paint(element, mark) {
  const { colour, dashed } = colourOf(mark.number);
  element.style.setProperty("--thing", colour);
  element.style.setProperty("--thing-ink", inkOn(colour));
  element.classList.toggle("dashed", dashed);
}

/** Where a box is, for those who read rather than look: "at the top left, from 22, 14 to 368, 511, 66 % of the picture". */
export function place(box, [width, height]) {
  const [x1, y1, x2, y2] = box;
  const share = ((x2 - x1) * (y2 - y1)) / (width * height);
  const numbers = `from ${Math.round(x1)}, ${Math.round(y1)} to ${Math.round(x2)}, ${Math.round(y2)}`;
  if (share > 0.9) return `the whole picture, ${numbers}`;
  const third = (value, whole, names) => names[Math.min(2, Math.max(0, Math.floor((3 * value) / whole)))];
  const down = third((y1 + y2) / 2, height, ["top", "middle", "bottom"]);
  const across = third((x1 + x2) / 2, width, ["left", "middle", "right"]);
  const where = down === across ? "centre" : down === "middle" ? across : across === "middle" ? down : `${down} ${across}`;
  return `${where === "centre" ? "in" : "at"} the ${where}, ${numbers}, ${percent(Math.max(0.01, share))} of the picture`;
}

/** Where a thing is in words: its first boxes, how likely it is there, and how sure the box is. */
export function describe(mark, size, most = 3) {
  const places = mark.boxes.slice(0, most).map((box) => place(box, size));
  const more = mark.boxes.length > most ? `, and ${mark.boxes.length - most} more` : "";
  const there = typeof mark.presence === "number" ? `; ${percent(mark.presence)} likely there` : "";
  const sure = typeof mark.sure === "number" ? `; ${percent(mark.sure)} sure of the box` : "";
  return (mark.doubted ? "doubtful: " : "") + places.join("; and ") + more + there + sure;
}

/** The boxes of a mark at a moment: those of a photo, or those of a clip's frames moved along between them. */
export function boxesAt(mark, frameTimes, time) {
  if (!frameTimes || !frameTimes.length) return mark.boxes;
  const seen = mark.frames.map((frame, at) => ({ time: frameTimes[frame], box: mark.boxes[at] }));
  seen.sort((a, b) => a.time - b.time);
  const gap = frameTimes.length > 1 ? frameTimes[1] - frameTimes[0] : 1;
  const after = seen.findIndex((item) => item.time >= time);
  const next = after < 0 ? null : seen[after];
  const last = after < 0 ? seen[seen.length - 1] : seen[after - 1] || null;
  if (last && next && next.time - last.time <= 1.5 * gap) {
    const share = (time - last.time) / (next.time - last.time || 1);
    return [last.box.map((side, at) => side + share * (next.box[at] - side))];
  }
  return [last, next].filter((item) => item && Math.abs(item.time - time) <= 0.75 * gap).slice(0, 1)
    .map((item) => item.box);
}

/** Boxes over a picture, in its own pixels. */
export class Overlay {
  constructor(svg) {
    this.svg = svg;
    this.shown = [];
  }

  draw(marks, [width, height], frameTimes = null, time = 0) {
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.size = [width, height];
    this.shown = [];
    for (const mark of marks) {
      for (const box of boxesAt(mark, frameTimes, time)) this.shown.push({ mark, box, area: area(box) });
    }
    this.shown.sort((a, b) => b.area - a.area); // large ones first, so that small ones stay visible
    const step = 0.01 * Math.max(width, height);
    this.svg.replaceChildren(...this.shown.map(({ mark, box }, at) => {
      const depth = this.shown.slice(0, at).filter((other) => same(other.box, box)).length;
      return this.#group(mark, inside(box, depth * step));
    }));
    this.light(this.lit);
  }

  #group(mark, [x1, y1, x2, y2]) {
    const group = document.createElementNS(SVG, "g");
    group.dataset.key = mark.key;
    if (mark.doubted) group.classList.add("doubted");
    const { colour, dashed } = colourOf(mark.number);
    for (const kind of ["halo", "line"]) {
      const rect = document.createElementNS(SVG, "rect");
      rect.setAttribute("class", kind);
      for (const [name, value] of Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1, rx: 2 })) {
        rect.setAttribute(name, value);
      }
      if (kind === "line") rect.setAttribute("stroke", colour);
      if (kind === "line" && (dashed || mark.doubted)) rect.setAttribute("stroke-dasharray", "9 7");
      group.append(rect);
    }
    return group;
  }

  light(key) {
    this.lit = key;
    const any = this.shown.some(({ mark }) => mark.key === key);
    this.svg.classList.toggle("lit", any);
    for (const group of this.svg.children) group.classList.toggle("lit", group.dataset.key === key);
  }

  /** The thing under a point of the screen: of several, the smallest. */
  under(clientX, clientY) {
    const frame = this.svg.getBoundingClientRect();
    if (!this.size || !frame.width) return null;
    const x = ((clientX - frame.left) / frame.width) * this.size[0];
    const y = ((clientY - frame.top) / frame.height) * this.size[1];
    const hit = this.shown.findLast(
      ({ mark, box }) => !mark.doubted && x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3],
    );
    return hit ? hit.mark.key : null;
  }
}

/** Whether two boxes would be drawn over each other: they overlap by nine tenths. */
function same(a, b) {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  const both = Math.max(0, width) * Math.max(0, height);
  return both >= 0.9 * (area(a) + area(b) - both);
}

/** A box drawn a little smaller, so that one around the same thing stays visible around it. */
function inside([x1, y1, x2, y2], by) {
  const x = Math.min(by, (x2 - x1) / 4);
  const y = Math.min(by, (y2 - y1) / 4);
  return [x1 + x, y1 + y, x2 - x, y2 - y];
}

const area = ([x1, y1, x2, y2]) => (x2 - x1) * (y2 - y1);

/** A sentence as nodes: each span [start, end, key] of a mark is a button that says where the thing is. */
export function sentence(text, spans, marks, size) {
  const nodes = [];
  let at = 0;
  for (const [start, end, key] of spans) {
    if (start < at) continue; // inside an earlier one
    nodes.push(text.slice(at, start));
    const mark = marks.get(key);
    const element = document.createElement(mark ? "button" : "span");
    element.className = "word";
    element.textContent = text.slice(start, end);
    if (key) element.dataset.key = key;
    if (mark) {
      element.type = "button";
      paint(element, mark);
      element.classList.toggle("doubted", Boolean(mark.doubted));
      element.setAttribute("aria-description", describe(mark, size));
    }
    nodes.push(element);
    at = end;
  }
  nodes.push(text.slice(at));
  return nodes;
}

/** A line of the list of places: the thing's name in its colour, and where it is. */
export function placeLine(mark, words) {
  const item = document.createElement("li");
  item.dataset.key = mark.key;
  paint(item, mark);
  item.classList.toggle("doubted", Boolean(mark.doubted)); // its box has no colour until one asks for it
  const name = document.createElement("b");
  name.textContent = mark.text;
  const where = document.createElement("span");
  where.textContent = words;
  item.append(name, where);
  return item;
}

/**
 * Word, boxes and line of the list light up together when one is pointed at or has the focus; a click keeps them lit.
 * Returns how to light something by hand, and how to forget what was kept.
 */
export function lightTogether(root, overlays, light) {
  let kept = null;
  let lit = null;
  const show = (key) => {
    if (key === lit) return;
    lit = key;
    light(key);
  };
  const keyOf = (event) => {
    const overlay = overlays().find(({ svg }) => svg.parentElement.contains(event.target));
    if (overlay && event.clientX !== undefined) return overlay.under(event.clientX, event.clientY);
    return event.target.closest?.("[data-key]")?.dataset.key ?? null;
  };
  root.addEventListener("pointermove", (event) => show(keyOf(event) ?? kept));
  root.addEventListener("pointerleave", () => show(kept));
  root.addEventListener("focusin", (event) => show(event.target.closest("[data-key]")?.dataset.key ?? kept));
  root.addEventListener("focusout", () => show(kept));
  root.addEventListener("click", (event) => {
    const key = keyOf(event);
    kept = key === kept ? null : key;
    show(kept ?? (event.pointerType === "touch" ? null : key));
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    kept = null;
    show(null);
  });
  return {
    show,
    forget() {
      kept = null;
      lit = null;
      light(null);
    },
  };
}
