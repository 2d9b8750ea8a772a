// The review page: boxes of a draft are moved, resized, relabelled, deleted and added, by mouse, finger or keyboard.
import { colourOf, place } from "./look.js";
import { Boxes, corrected } from "./boxes.js";
import { Hands } from "./hands.js";

const task = JSON.parse(document.getElementById("task").textContent);
const $ = (id) => document.getElementById(id);
const MEMORY = `deixis-review-${task.mark}`;

class Desk {
  constructor() {
    this.photos = task.photos.map((photo) => new Boxes(photo));
    this.at = 0;
    this.selected = -1;
    this.hands = new Hands($("overlay"), this);
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
    this.hands.draw();
  }

  colour(number) {
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
    line.style.setProperty("--thing", colourOf(this.colour(number)).colour);
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
    for (const [id, act] of Object.entries({
      previous: () => this.go(-1), next: () => this.go(1), done: () => this.done(), add: () => this.add(),
      undo: () => this.undo(), save: () => this.save(),
    })) $(id).addEventListener("click", act);
    document.addEventListener("keydown", (event) => this.#key(event));
    addEventListener("resize", () => this.draw());
    addEventListener("beforeunload", (event) => { if (!this.saved) event.preventDefault(); });
  }

  settled(drawn) {
    this.#remember();
    this.refresh();
    if (drawn) $("boxes").children[this.selected]?.querySelector("input").focus();
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
      this.edit(() => this.hands.nudge(event));
      this.say(place(this.box.box, this.photo.size));
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
