// The review page: boxes of a draft are moved, resized, relabelled, deleted and added, by mouse, finger or keyboard.
import { SVG, colourOf, place } from "./look.js";
import { Boxes, corrected } from "./boxes.js";

const task = JSON.parse(document.getElementById("task").textContent);
const $ = (id) => document.getElementById(id);
const MEMORY = `deixis-review-${task.mark}`;
const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];

class Desk {
  constructor() {
    this.photos = task.photos.map((photo) => new Boxes(photo));
    this.at = 0;
    this.selected = -1;
    this.drag = null;
    this.saved = true;
    this.#recall();
    this.at = Math.max(0, this.photos.findIndex(({ reviewed }) => !reviewed));
    this.#listen();
    this.show();
  }

  get photo() { return this.photos[this.at]; }
  get box() { return this.photo.boxes[this.selected]; }

  // --- what was done survives a reload, where the browser keeps such things

  #remember() {
    this.saved = false;
    try {
      localStorage.setItem(MEMORY, JSON.stringify(this.photos.map((photo) => photo.state)));
    } catch { /* a private window, or no room left: the file is still saved by hand */ }
  }

  #recall() {
    try {
      const states = JSON.parse(localStorage.getItem(MEMORY));
      if (states?.length !== this.photos.length) return;
      states.forEach((state, at) => { this.photos[at].state = state; });
      this.saved = false;
      this.say("Went on where this browser left off.");
    } catch { /* nothing kept, or nothing that can be read */ }
  }

  // --- showing

  show() {
    const { photo } = this;
    $("name").textContent = photo.image;
    $("picture").alt = `The photo ${photo.image}`;
    const block = $(`p${this.at}`);
    $("picture").src = `data:${block.dataset.type};base64,${block.textContent}`;
    $("stage").style.aspectRatio = `${photo.size[0]} / ${photo.size[1]}`;
    $("stage").style.width = `min(100%, calc(72vh * ${photo.size[0] / photo.size[1]}))`;
    $("overlay").setAttribute("viewBox", `0 0 ${photo.size[0]} ${photo.size[1]}`);
    $("absent").textContent = photo.absent.length ? `Not found: ${photo.absent.join(", ")}` : "";
    this.select(-1);
    this.refresh();
  }

  refresh() {
    const done = this.photos.filter(({ reviewed }) => reviewed).length;
    $("progress").textContent = `Photo ${this.at + 1} of ${this.photos.length}; ${done} done`;
    $("meter").max = this.photos.length;
    $("meter").value = done;
    $("state").textContent = this.photo.reviewed ? "Done" : this.photo.edited ? "Changed, not done yet" : "";
    $("previous").disabled = this.at === 0;
    $("next").disabled = this.at === this.photos.length - 1;
    $("undo").disabled = !this.photo.history.length;
    this.draw();
    this.#list();
  }

  draw() {
    const groups = this.photo.byArea().map((number) => this.#group(number));
    $("overlay").replaceChildren(...groups);
  }

  #group(number) {
    const { box, doubted } = this.photo.boxes[number];
    const group = document.createElementNS(SVG, "g");
    const { colour, dashed } = colourOf(this.#colour(number));
    group.dataset.box = number;
    group.classList.toggle("chosen", number === this.selected);
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
    if (number === this.selected) group.append(...HANDLES.map((name) => this.#handle(name, box)));
    return group;
  }

  #handle(name, box) {
    const [x, y] = handlePlace(name, box);
    const [across, down] = this.#pixels(5);
    const knob = document.createElementNS(SVG, "ellipse");
    knob.setAttribute("class", `knob ${name}`);
    for (const [key, value] of Object.entries({ cx: x, cy: y, rx: across, ry: down })) knob.setAttribute(key, value);
    return knob;
  }

  #colour(number) {
    const labels = [...new Set(this.photo.boxes.map(({ label }) => label))];
    return labels.indexOf(this.photo.boxes[number].label);
  }

  #list() {
    const focused = document.activeElement?.closest?.("#boxes li")?.dataset.box;
    const field = document.activeElement?.tagName;
    $("boxes").replaceChildren(...this.photo.boxes.map((box, number) => this.#line(box, number)));
    $("none").hidden = this.photo.boxes.length > 0;
    const again = focused === undefined ? null : $("boxes").children[focused];
    again?.querySelector(field === "INPUT" ? "input" : "button")?.focus({ preventScroll: true });
  }

  #line(box, number) {
    const line = document.createElement("li");
    line.dataset.box = number;
    line.classList.toggle("chosen", number === this.selected);
    line.classList.toggle("doubted", Boolean(box.doubted));
    line.style.setProperty("--thing", colourOf(this.#colour(number)).colour);
    const name = box.label || "no label";
    const pick = button("Select", () => this.select(number), `Select ${name}, ${place(box.box, this.photo.size)}`);
    pick.className = "pick";
    pick.textContent = "";
    const label = document.createElement("input");
    Object.assign(label, { value: box.label, autocomplete: "off" });
    label.setAttribute("list", "labels");
    label.setAttribute("aria-label", `Label of box ${number + 1}`);
    label.addEventListener("focus", () => this.select(number, false));
    label.addEventListener("change", () => this.edit(() => this.photo.rename(number, label.value)));
    const remove = button("Delete", () => this.remove(number), `Delete ${name}`);
    line.append(pick, label, ...(box.doubted ? [button("Keep", () => this.keep(number), `Keep ${name}`)] : []), remove);
    return line;
  }

  select(number, list = true) {
    if (number === this.selected) return;
    this.selected = number;
    this.draw();
    if (list) this.#list();
    else for (const line of $("boxes").children) line.classList.toggle("chosen", Number(line.dataset.box) === number);
    if (number >= 0) this.say(`${this.box.label || "Box"} ${place(this.box.box, this.photo.size)}`);
  }

  say(text) { $("status").textContent = text; }

  // --- changing

  edit(change) {
    this.photo.keepForUndo();
    change();
    this.#remember();
    this.refresh();
  }

  remove(number = this.selected) {
    if (number < 0) return;
    const { label } = this.photo.boxes[number];
    this.selected = -1;
    this.edit(() => this.photo.remove(number));
    this.say(`Deleted ${label || "a box"}; Z brings it back.`);
    $("boxes").children[Math.min(number, this.photo.boxes.length - 1)]?.querySelector("button").focus();
  }

  keep(number = this.selected) {
    if (this.photo.boxes[number]?.doubted) this.edit(() => this.photo.keep(number));
  }

  add(box) {
    const [width, height] = this.photo.size;
    const middle = [width * 0.35, height * 0.35, width * 0.65, height * 0.65];
    const last = this.box?.label ?? "";
    this.edit(() => this.photo.add(box ?? middle, last));
    this.select(this.photo.boxes.length - 1);
    const field = $("boxes").lastElementChild.querySelector("input");
    field.focus();
    field.select();
  }

  undo() {
    this.selected = -1;
    if (this.photo.undo()) { this.#remember(); this.refresh(); }
  }

  go(step) {
    const next = this.at + step;
    if (next < 0 || next >= this.photos.length) return;
    this.at = next;
    this.show();
  }

  done() {
    this.edit(() => this.photo.finish());
    if (this.at + 1 < this.photos.length) this.go(1);
    else this.say("That was the last photo: save the file.");
  }

  save() {
    const file = new Blob([JSON.stringify(corrected(this.photos))], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = task.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    this.saved = true;
    const left = this.photos.filter(({ reviewed, edited }) => edited && !reviewed).length;
    const done = this.photos.filter(({ reviewed }) => reviewed).length;
    const rest = left ? ` ${left} changed but not marked as done: they do not count yet.` : "";
    this.say(`Saved ${task.file}: ${done} photos done.${rest}`);
  }

  // --- listening

  #listen() {
    const stage = $("overlay");
    stage.addEventListener("pointerdown", (event) => this.#grab(event));
    stage.addEventListener("pointermove", (event) => this.#pull(event));
    for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, (event) => this.#drop(event));
    for (const [id, act] of Object.entries({
      previous: () => this.go(-1), next: () => this.go(1), done: () => this.done(), add: () => this.add(),
      undo: () => this.undo(), save: () => this.save(),
    })) $(id).addEventListener("click", act);
    document.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("resize", () => this.draw());
    addEventListener("beforeunload", (event) => { if (!this.saved) event.preventDefault(); });
  }

  #point(event) {
    const frame = $("overlay").getBoundingClientRect();
    const share = [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
    return share.map((value, at) => Math.min(Math.max(value, 0), 1) * this.photo.size[at]);
  }

  /** So many pixels of the screen, in pixels of the photo. */
  #pixels(count) {
    const frame = $("overlay").getBoundingClientRect();
    return [count * this.photo.size[0] / (frame.width || 1), count * this.photo.size[1] / (frame.height || 1)];
  }

  #grab(event) {
    if (event.button) return;
    event.preventDefault();
    document.activeElement?.blur?.();
    const start = this.#point(event);
    const [across, down] = this.#pixels(event.pointerType === "touch" ? 18 : 9);
    const near = this.box && HANDLES.find((name) => {
      const [x, y] = handlePlace(name, this.box.box);
      return Math.abs(x - start[0]) <= across && Math.abs(y - start[1]) <= down;
    });
    const hit = near ? this.selected : this.photo.under(start, this.selected);
    this.select(hit);
    const kind = near ?? (hit >= 0 ? "move" : "new");
    this.drag = { kind, start, from: hit >= 0 ? [...this.box.box] : null, moved: false };
    $("overlay").setPointerCapture(event.pointerId);
  }

  #pull(event) {
    if (!this.drag) return;
    const [x, y] = this.#point(event);
    const { start, kind, from } = this.drag;
    const [across, down] = this.#pixels(3);
    if (!this.drag.moved && Math.abs(x - start[0]) < across && Math.abs(y - start[1]) < down) return;
    if (!this.drag.moved) {
      this.photo.keepForUndo();
      if (kind === "new") this.selected = this.photo.add([...start, ...start], "");
    }
    this.drag.moved = true;
    if (kind === "new") this.photo.place(this.selected, [...start, x, y]);
    else if (kind === "move") this.photo.move(this.selected, from, x - start[0], y - start[1]);
    else this.photo.place(this.selected, stretched(kind, from, x, y));
    this.draw();
  }

  #drop() {
    const drag = this.drag;
    this.drag = null;
    if (!drag?.moved) return;
    this.photo.settle(this.selected);
    this.#remember();
    this.refresh();
    if (drag.kind === "new") $("boxes").children[this.selected]?.querySelector("input").focus();
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey) {
      const act = { s: () => this.save(), z: () => this.undo() }[event.key.toLowerCase()];
      if (act) { event.preventDefault(); act(); }
      return;
    }
    if (event.target.tagName === "INPUT") {
      if (event.key === "Enter" || event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key.startsWith("Arrow") && this.box) {
      event.preventDefault();
      this.#nudge(event);
      return;
    }
    if (event.key === "Enter" && event.target.tagName !== "BODY" && !event.target.classList.contains("pick")) return;
    const acts = {
      d: () => this.done(), n: () => this.add(), z: () => this.undo(), s: () => this.save(), k: () => this.keep(),
      pagedown: () => this.go(1), pageup: () => this.go(-1), delete: () => this.remove(),
      backspace: () => this.remove(), escape: () => this.select(-1), ".": () => this.#step(1), ",": () => this.#step(-1),
      enter: () => { if (this.box) $("boxes").children[this.selected].querySelector("input").focus(); },
    };
    const act = acts[event.key.toLowerCase()];
    if (act && !(event.key === "Enter" && !this.box)) { event.preventDefault(); act(); }
  }

  /** Go from box to box. */
  #step(by) {
    const count = this.photo.boxes.length;
    if (count) this.select(this.selected < 0 ? (by > 0 ? 0 : count - 1) : (this.selected + by + count) % count);
  }

  /** Arrows move a box by a hundredth of the photo, with Alt by a pixel; with Shift they move its lower right corner. */
  #nudge({ key, altKey, shiftKey }) {
    const [width, height] = this.photo.size;
    const step = altKey ? [1, 1] : [width / 100, height / 100];
    const dx = { ArrowLeft: -step[0], ArrowRight: step[0] }[key] ?? 0;
    const dy = { ArrowUp: -step[1], ArrowDown: step[1] }[key] ?? 0;
    const from = [...this.box.box];
    this.edit(() => {
      if (shiftKey) this.photo.place(this.selected, [from[0], from[1], from[2] + dx, from[3] + dy]);
      else this.photo.move(this.selected, from, dx, dy);
      this.photo.settle(this.selected);
    });
    this.say(place(this.box.box, this.photo.size));
  }
}

function handlePlace(name, [x1, y1, x2, y2]) {
  const x = name.includes("w") ? x1 : name.includes("e") ? x2 : (x1 + x2) / 2;
  const y = name.includes("n") ? y1 : name.includes("s") ? y2 : (y1 + y2) / 2;
  return [x, y];
}

function stretched(name, [x1, y1, x2, y2], x, y) {
  return [
    name.includes("w") ? x : x1, name.includes("n") ? y : y1, name.includes("e") ? x : x2, name.includes("s") ? y : y2,
  ];
}

function button(text, act, about) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", textContent: text });
  made.setAttribute("aria-label", about);
  made.addEventListener("click", act);
  return made;
}

window.desk = new Desk();
document.documentElement.dataset.ready = "true";
