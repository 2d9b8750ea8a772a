// Correcting an answer: words are typed over, boxes moved, deleted and added. What comes out is an answer again.
import { colourOf, place } from "../look/look.js";
import { Boxes } from "../labels/boxes.js";
import { Hands } from "../labels/hands.js";

const OTHER = -1; // a box of something that the sentence does not name

export class Correction {
  /** Correct a caption and, on a photo (`svg` given), boxes of its words and of phrases; `done` takes both. */
  constructor(root, svg, caption, phrases, { done, cancel, say }) {
    Object.assign(this, { root, svg, caption, done, cancel, say, selected: -1 });
    this.texts = caption.words.map(({ text }) => text);
    this.photo = new Boxes({ image: caption.image, size: caption.size, absent: [], boxes: things(caption, phrases) });
    this.before = structuredClone(this.photo.boxes);
    this.phrases = phrases;
    this.hands = svg ? new Hands(svg, this) : null;
    this.#build();
    this.refresh();
    this.words.querySelector("input")?.focus();
  }

  // --- what Hands asks for

  draw() { this.hands?.draw(); }

  colour(number) {
    const names = [...new Set(this.photo.boxes.map((box) => this.#nameOf(box)))];
    return names.indexOf(this.#nameOf(this.photo.boxes[number]));
  }

  select(number) {
    this.selected = number;
    this.draw();
    for (const line of this.list.children) line.classList.toggle("chosen", Number(line.dataset.box) === number);
    if (number >= 0) this.say(`${this.#nameOf(this.photo.boxes[number]) || "Box"} ${place(this.photo.boxes[number].box, this.photo.size)}`);
  }

  settled(drawn) {
    if (drawn) this.photo.boxes[this.selected].word = OTHER;
    this.refresh();
    if (drawn) this.list.children[this.selected]?.querySelector("select").focus();
  }

  // --- showing

  #build() {
    this.words = element("div", { className: "typed", role: "group", ariaLabel: "Words of the sentence" });
    const letters = Array.from(this.caption.text);
    this.caption.words.forEach((word, at) => {
      const before = letters.slice(this.caption.words[at - 1]?.end ?? 0, word.start).join("").trim();
      const field = element("input", { type: "text", value: word.text, autocomplete: "off", maxLength: 60 });
      field.setAttribute("aria-label", `Word ${at + 1}`);
      field.size = Math.max(2, word.text.length);
      field.addEventListener("input", () => {
        this.texts[at] = field.value.trim().replace(/\s+/g, " ");
        field.size = Math.max(2, field.value.length);
        this.refresh();
      });
      if (before) this.words.append(before);
      this.words.append(field);
    });
    this.words.append(letters.slice(this.caption.words.at(-1)?.end ?? 0).join(""));
    this.list = element("ol", { className: "things", ariaLabel: "Boxes" });
    this.undoing = button("Undo", () => { this.selected = -1; this.photo.undo(); this.refresh(); });
    const add = button("Add a box", () => this.#add());
    const row = element("div", { className: "row" });
    row.append(...(this.hands ? [add, this.undoing] : []), button("Done", () => this.#finish(), "strong"), button("Cancel", () => this.#leave()));
    const hint = element("p", { className: "hint", textContent: this.hands
      ? "Type over a wrong word; empty it to leave it out. Drag boxes on the photo, or draw a new one; with the keyboard, "
        + "arrows move the box whose coloured button has the focus (Shift: its lower right corner), Delete removes it."
      : "Type over a wrong word; empty it to leave it out. Boxes of clips cannot be corrected here." });
    this.root.replaceChildren(this.words, ...(this.hands ? [this.list] : []), hint, row);
    this.root.onkeydown = (event) => this.#key(event);
  }

  refresh() {
    this.draw();
    this.undoing.disabled = !this.photo.history.length;
    if (this.hands) {
      const focused = document.activeElement?.closest?.(".things li");
      const [at, tag] = focused ? [Number(focused.dataset.box), document.activeElement.className || document.activeElement.tagName] : [-1, ""];
      this.list.replaceChildren(...this.photo.boxes.map((box, number) => this.#line(box, number)));
      const again = this.list.children[at];
      (again?.querySelector(tag === "pick" || !tag ? ".pick" : tag) ?? again?.querySelector(".pick"))?.focus({ preventScroll: true });
    }
  }

  #line(box, number) {
    const line = element("li", {});
    line.dataset.box = number;
    line.classList.toggle("chosen", number === this.selected);
    line.classList.toggle("doubted", Boolean(box.doubted));
    line.style.setProperty("--thing", colourOf(this.colour(number)).colour);
    const name = this.#nameOf(box) || "a box without a name";
    const pick = element("button", { type: "button", className: "pick", ariaLabel: `Select ${name}, ${place(box.box, this.photo.size)}` });
    pick.addEventListener("focus", () => this.select(number));
    pick.addEventListener("click", () => this.select(number));
    const which = element("select", { ariaLabel: `What box ${number + 1} shows` });
    which.append(...this.texts.map((text, at) => new Option(text, at)).filter(({ text }) => text), new Option("something else", OTHER));
    which.value = String(box.word);
    which.addEventListener("change", () => this.#edit(() => {
      Object.assign(box, { word: Number(which.value), label: Number(which.value) === OTHER ? "" : box.label });
      delete box.doubted;
    }));
    const parts = [pick, which];
    if (box.word === OTHER) {
      const label = element("input", { type: "text", value: box.label, autocomplete: "off", maxLength: 60, ariaLabel: `Name of box ${number + 1}`, placeholder: "a red hat" });
      label.addEventListener("change", () => this.#edit(() => this.photo.rename(number, label.value)));
      parts.push(label);
    }
    if (box.doubted) parts.push(button("Keep", () => this.#edit(() => this.photo.keep(number)), "", `Keep ${name}`));
    const gone = button("×", () => this.#remove(number), "", `Delete ${name}`);
    gone.title = "Delete";
    parts.push(gone);
    line.append(...parts);
    return line;
  }

  // --- changing

  #edit(change) {
    this.photo.keepForUndo();
    change();
    this.refresh();
  }

  #add() {
    const [width, height] = this.photo.size;
    this.#edit(() => {
      this.selected = this.photo.add([width * 0.35, height * 0.35, width * 0.65, height * 0.65], "");
      this.photo.boxes[this.selected].word = OTHER;
    });
    this.list.lastElementChild.querySelector("select").focus();
  }

  #remove(number) {
    this.selected = -1;
    this.#edit(() => this.photo.remove(number));
    (this.list.children[Math.min(number, this.photo.boxes.length - 1)] ?? this.root).querySelector("button").focus();
  }

  #key(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.#leave();
    } else if (event.key === "z" && (event.ctrlKey || event.metaKey) && event.target.tagName !== "INPUT") {
      this.undoing.click();
    } else if (event.target.className === "pick" && event.key.startsWith("Arrow")) {
      event.preventDefault();
      this.#edit(() => this.hands.nudge(event));
      this.say(place(this.photo.boxes[this.selected].box, this.photo.size));
    } else if (event.target.className === "pick" && ["Delete", "Backspace"].includes(event.key)) {
      this.#remove(this.selected);
    }
  }

  #nameOf({ word, label }) { return word === OTHER ? label : this.texts[word]; }

  // --- the answer

  #leave() {
    this.root.onkeydown = null;
    this.cancel();
  }

  #finish() {
    const nameless = this.photo.boxes.findIndex((box) => !this.#nameOf(box));
    if (nameless >= 0) {
      this.say("This box has no name yet.");
      const line = this.list.children[nameless];
      (line.querySelector("input") ?? line.querySelector("select")).focus();
      return;
    }
    this.root.onkeydown = null;
    this.done(this.#caption(), this.hands ? this.#phrases() : this.phrases);
  }

  #caption() {
    const letters = Array.from(this.caption.text);
    const words = [];
    let text = "";
    let end = 0;
    this.caption.words.forEach((word, at) => {
      const gap = letters.slice(end, word.start).join("");
      end = word.end;
      if (!this.texts[at]) return;
      text += text || gap.trim() ? gap : "";
      const start = Array.from(text).length;
      text += this.texts[at];
      words.push({ ...this.#word(word, at), text: this.texts[at], start, end: Array.from(text).length });
    });
    text += letters.slice(end).join("");
    const { score, ...rest } = this.caption;
    const same = text === this.caption.text;
    return { ...rest, ...(same ? { score } : {}), text, words, model: byHand(this.caption.model) };
  }

  #word(word, at) {
    if (!this.hands) return this.texts[at] === word.text ? word : sure(word);
    const mine = this.photo.boxes.filter((box) => box.word === at);
    const was = this.before.filter((box) => box.word === at);
    if (this.texts[at] === word.text && JSON.stringify(mine) === JSON.stringify(was)) return word;
    const boxes = mine.map(({ box }) => box);
    return { ...sure(word), boxes, frames: boxes.map(() => 0), groundable: word.groundable || boxes.length > 0 };
  }

  #phrases() {
    const own = this.photo.boxes.filter((box) => box.word === OTHER);
    return [...new Set(own.map(({ label }) => label))].map((text) => {
      const mine = own.filter(({ label }) => label === text);
      const old = this.phrases.find((phrase) => phrase.text === text);
      const boxes = mine.map(({ box }) => box);
      if (old && JSON.stringify(boxes) === JSON.stringify(old.boxes) && old.found !== mine.every(({ doubted }) => doubted)) return old;
      return { text, boxes, frames: boxes.map(() => 0), score: 1, found: true };
    });
  }
}

/** The boxes of an answer: of words (by their number in the sentence) and of phrases (by their text). */
function things(caption, phrases) {
  const of = (item, word) => (item.boxes ?? []).map((box) => ({
    label: item.text, box: [...box], mentions: [], word, ...(item.trusted === false || item.found === false ? { doubted: true } : {}),
  }));
  return [
    ...caption.words.flatMap((word, at) => (word.groundable ? of(word, at) : [])),
    ...phrases.flatMap((phrase) => of(phrase, OTHER)),
  ];
}

/** A word as a person vouches for it. */
function sure({ presence, ...word }) {
  return { ...word, score: 1, trusted: true };
}

function byHand(model) {
  const mark = ", corrected by hand";
  return (model ?? "").endsWith(mark) ? model : `${model ?? ""}${mark}`;
}

function element(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}

function button(text, act, kind = "", about = null) {
  const made = element("button", { type: "button", textContent: text, className: kind });
  if (about) made.setAttribute("aria-label", about);
  made.addEventListener("click", act);
  return made;
}
