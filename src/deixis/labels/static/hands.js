// Hands on boxes: they are drawn with knobs, dragged and nudged. The review page and the page of `deixis serve` share it.
import { SVG, colourOf } from "../look/look.js";

const KNOBS = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];

export class Hands {
  /**
   * `desk` holds `photo` (its Boxes), `selected` (a number, -1 for none), `select(number)`, `draw()`, `colour(number)`,
   * and `settled(drawn)`, which is told when a box was dragged, or drawn, to its place.
   */
  constructor(svg, desk) {
    Object.assign(this, { svg, desk, drag: null });
    svg.addEventListener("pointerdown", (event) => this.#grab(event));
    svg.addEventListener("pointermove", (event) => this.#pull(event));
    for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => this.#drop());
  }

  draw() {
    const { photo } = this.desk;
    this.svg.setAttribute("viewBox", `0 0 ${photo.size[0]} ${photo.size[1]}`);
    this.svg.replaceChildren(...photo.byArea().map((number) => this.#group(number)));
  }

  /** Arrows move a box by a hundredth of the photo, with Alt by a pixel; with Shift they move its lower right corner. */
  nudge({ key, altKey, shiftKey }) {
    const { photo, selected } = this.desk;
    const [width, height] = photo.size;
    const step = altKey ? [1, 1] : [width / 100, height / 100];
    const dx = { ArrowLeft: -step[0], ArrowRight: step[0] }[key] ?? 0;
    const dy = { ArrowUp: -step[1], ArrowDown: step[1] }[key] ?? 0;
    const from = [...photo.boxes[selected].box];
    if (shiftKey) photo.place(selected, [from[0], from[1], from[2] + dx, from[3] + dy]);
    else photo.move(selected, from, dx, dy);
    photo.settle(selected);
  }

  #group(number) {
    const { photo, selected } = this.desk;
    const { box, doubted } = photo.boxes[number];
    const group = document.createElementNS(SVG, "g");
    const { colour, dashed } = colourOf(this.desk.colour(number));
    group.dataset.box = number;
    group.classList.toggle("chosen", number === selected);
    for (const kind of ["halo", "line"]) {
      const rect = document.createElementNS(SVG, "rect");
      rect.setAttribute("class", kind);
      const [x1, y1, x2, y2] = box;
      for (const [name, value] of Object.entries({ x: x1, y: y1, width: x2 - x1, height: y2 - y1 })) {
        rect.setAttribute(name, value);
      }
      if (kind === "line") rect.setAttribute("stroke", colour);
      if (kind === "line" && (dashed || doubted)) rect.setAttribute("stroke-dasharray", doubted ? "3 6" : "9 7");
      group.append(rect);
    }
    if (number === selected) group.append(...KNOBS.map((name) => this.#knob(name, box)));
    return group;
  }

  #knob(name, box) {
    const [x, y] = knobPlace(name, box);
    const [across, down] = this.#pixels(5);
    const knob = document.createElementNS(SVG, "ellipse");
    knob.setAttribute("class", `knob ${name}`);
    for (const [key, value] of Object.entries({ cx: x, cy: y, rx: across, ry: down })) knob.setAttribute(key, value);
    return knob;
  }

  #point(event) {
    const frame = this.svg.getBoundingClientRect();
    const share = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    return share.map((value, at) => Math.min(Math.max(value, 0), 1) * this.desk.photo.size[at]);
  }

  /** So many pixels of the screen, in pixels of the photo. */
  #pixels(count) {
    const frame = this.svg.getBoundingClientRect();
    const { size } = this.desk.photo;
    return [count * size[0] / (frame.width || 1), count * size[1] / (frame.height || 1)];
  }

  #grab(event) {
    if (event.button) return;
    event.preventDefault();
    document.activeElement?.blur?.();
    const { desk } = this;
    const start = this.#point(event);
    const [across, down] = this.#pixels(event.pointerType === "touch" ? 18 : 9);
    const chosen = desk.photo.boxes[desk.selected];
    const near = chosen && KNOBS.find((name) => {
      const [x, y] = knobPlace(name, chosen.box);
      return Math.abs(x - start[0]) <= across && Math.abs(y - start[1]) <= down;
    });
    const hit = near ? desk.selected : desk.photo.under(start, desk.selected);
    desk.select(hit);
    const kind = near ?? (hit >= 0 ? "move" : "new");
    this.drag = { kind, start, from: hit >= 0 ? [...desk.photo.boxes[hit].box] : null, moved: false };
    this.svg.setPointerCapture(event.pointerId);
  }

  #pull(event) {
    if (!this.drag) return;
    const { desk } = this;
    const [x, y] = this.#point(event);
    const { start, kind, from } = this.drag;
    const [across, down] = this.#pixels(3);
    if (!this.drag.moved && Math.abs(x - start[0]) < across && Math.abs(y - start[1]) < down) return;
    if (!this.drag.moved) {
      desk.photo.keepForUndo();
      if (kind === "new") desk.selected = desk.photo.add([...start, ...start], "");
    }
    this.drag.moved = true;
    if (kind === "new") desk.photo.place(desk.selected, [...start, x, y]);
    else if (kind === "move") desk.photo.move(desk.selected, from, x - start[0], y - start[1]);
    else desk.photo.place(desk.selected, stretched(kind, from, x, y));
    desk.draw();
  }

  #drop() {
    const { drag, desk } = this;
    this.drag = null;
    if (!drag?.moved) return;
    desk.photo.settle(desk.selected);
    desk.settled(drag.kind === "new");
  }
}

function knobPlace(name, [x1, y1, x2, y2]) {
  const x = name.includes("w") ? x1 : name.includes("e") ? x2 : (x1 + x2) / 2;
  const y = name.includes("n") ? y1 : name.includes("s") ? y2 : (y1 + y2) / 2;
  return [x, y];
}

function stretched(name, [x1, y1, x2, y2], x, y) {
  return [
    name.includes("w") ? x : x1, name.includes("n") ? y : y1, name.includes("e") ? x : x2, name.includes("s") ? y : y2,
  ];
}
