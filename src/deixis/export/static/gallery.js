// Shows the answers of a page written to a file: cards for photos, or one clip with moving boxes.
import { Overlay, SVG, describe, lightTogether, placeLine, sentence } from "./look.js";

const answers = JSON.parse(document.getElementById("answers").textContent);
const shelf = document.getElementById("cards");

function make(name, className, ...children) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Hand over the text of a data block as soon as the browser has read that far down the file. */
function whenThere(id, then) {
  const block = document.getElementById(id);
  if (block && (block.nextSibling || document.readyState !== "loading")) then(block.textContent, block.dataset.type);
  else if (document.readyState === "loading") setTimeout(whenThere, 40, id, then);
}

class Card {
  constructor(answer) {
    this.answer = answer;
    this.marks = new Map(answer.marks.map((mark) => [mark.key, mark]));
    this.overlays = [];
    this.root = make("article", "panel");
    if (answer.title) this.root.append(make("h2", "", answer.title));
    this.stages = make("div", answer.pictures.length === 1 ? "stages alone" : "stages");
    this.root.classList.toggle("strip", answer.pictures.length > 1);
    answer.pictures.forEach((picture) => this.stages.append(this.#stage(picture)));
    this.caption = make("div", "caption");
    this.root.append(this.stages, this.caption);
    this.#texts(answer.texts);
    this.#places();
    lightTogether(this.root, () => this.overlays, (key) => this.light(key));
  }

  #stage({ size }) {
    const stage = make("div", "stage", make("div", "media"));
    // Room is kept before the photo is there, so that nothing jumps; tall photos must fit on a screen.
    stage.style.aspectRatio = `${size[0]} / ${size[1]}`;
    stage.style.width = shelf.className === "one"
      ? `min(100%, ${Math.max(size[0], 480)}px, calc(78vh * ${size[0] / size[1]}))`
      : `min(100%, calc(22rem * ${size[0] / size[1]}))`;
    return stage;
  }

  #texts(texts) {
    for (const { text, spans } of texts) {
      this.caption.append(make("p", "sentence", ...sentence(text, spans, this.marks, this.answer.size)));
    }
  }

  #places() {
    if (!this.answer.marks.length) return;
    const details = make("details", "places", make("summary", "", "Where the words point"));
    details.open = shelf.className === "one";
    const fill = () => {
      if (details.childElementCount > 1) return;
      const lines = this.answer.marks.map((mark) => placeLine(mark, describe(mark, this.answer.size)));
      details.append(make("ul", "", ...lines));
    };
    if (details.open) fill();
    else details.addEventListener("toggle", fill);
    this.root.append(details);
  }

  /** Load the photos: called when the card comes near the screen. */
  fill() {
    this.answer.pictures.forEach(({ block, alt }, at) => {
      const stage = this.stages.children[at];
      const picture = document.createElement("img");
      picture.alt = alt;
      picture.decoding = "async";
      stage.firstChild.append(picture);
      whenThere(block, (text, type) => {
        picture.src = `data:${type};base64,${text}`;
      });
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("aria-hidden", "true");
      stage.append(svg);
      const overlay = new Overlay(svg);
      this.overlays.push(overlay);
      overlay.draw(this.#marksOf(at), this.answer.size);
    });
  }

  #marksOf(picture) {
    return this.answer.marks.map((mark) => ({
      ...mark,
      boxes: mark.boxes.filter((_, at) => (mark.frames[at] ?? 0) === picture),
    }));
  }

  light(key) {
    for (const overlay of this.overlays) overlay.light(key);
    for (const element of this.root.querySelectorAll(".word, .places li")) {
      element.classList.toggle("lit", Boolean(key) && element.dataset.key === key);
    }
  }
}

/** A clip: the boxes of the sentence on show move with the time. */
class Clip {
  constructor({ segments, size, block, address, title }) {
    this.segments = segments.map((segment) => ({
      ...segment, byKey: new Map(segment.marks.map((mark) => [mark.key, mark])),
    }));
    this.size = size;
    this.current = -1;
    this.video = make("video", "");
    Object.assign(this.video, { controls: true, muted: true, playsInline: true, loop: true, preload: "auto" });
    this.video.setAttribute("aria-label", segments.map(({ text }) => text).join(" "));
    if (address) this.video.src = address;
    else whenThere(block, (text, type) => {
      const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
      this.video.src = URL.createObjectURL(new Blob([bytes], { type }));
    });
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("aria-hidden", "true");
    this.overlay = new Overlay(svg);
    const stage = make("div", "stage", make("div", "media", this.video), svg);
    stage.style.aspectRatio = `${size[0]} / ${size[1]}`;
    stage.style.width = `min(100%, ${Math.max(size[0], 640)}px, calc(78vh * ${size[0] / size[1]}))`;
    this.sentence = make("p", "sentence");
    this.places = make("details", "places", make("summary", "", "Where the words point"), make("ul", ""));
    this.places.open = true;
    this.list = make("ol", "segments", ...this.segments.map((segment, at) => this.#line(segment, at)));
    this.list.setAttribute("aria-label", "Sentences of the clip");
    this.list.hidden = segments.length < 2;
    this.root = make("article", "panel", make("div", "stages alone", stage),
      make("div", "caption", this.sentence, this.list), this.places);
    if (title) this.root.prepend(make("h2", "", title));
    lightTogether(this.root, () => [this.overlay], (key) => this.light(key));
    for (const name of ["seeked", "loadeddata", "pause"]) this.video.addEventListener(name, () => this.show());
    this.video.addEventListener("play", () => this.#follow());
    this.show();
  }

  #line({ text, segment: [start, end] }, at) {
    const button = make("button", "", `${start.toFixed(1)} to ${end.toFixed(1)} s: ${text}`);
    button.type = "button";
    button.addEventListener("click", () => {
      this.video.currentTime = Math.min(start + 0.01, end);
      this.choose(at);
    });
    return make("li", "", button);
  }

  #follow() {
    this.show();
    if (!this.video.paused && this.video.isConnected) requestAnimationFrame(() => this.#follow());
  }

  show() {
    const time = this.video.currentTime;
    const holds = ({ segment }) => time >= segment[0] && time < segment[1];
    // Segments may overlap: the one that was chosen stays as long as it lasts.
    if (this.current < 0 || !holds(this.segments[this.current])) {
      const at = this.segments.findIndex(holds);
      this.choose(at >= 0 ? at : Math.max(this.current, 0));
    }
    const { marks, times } = this.segments[this.current];
    this.overlay.draw(marks, this.size, times, time);
  }

  choose(at) {
    if (at === this.current) return;
    this.current = at;
    const { text, spans, marks, byKey, times } = this.segments[at];
    this.sentence.replaceChildren(...sentence(text, spans, byKey, this.size));
    const where = (mark) => {
      const seen = mark.frames.map((frame) => times[frame]).filter((time) => time !== undefined);
      const when = seen.length ? `at ${Math.min(...seen).toFixed(1)} to ${Math.max(...seen).toFixed(1)} s; ` : "";
      return `${when}first ${describe({ ...mark, boxes: mark.boxes.slice(0, 1) }, this.size)}`;
    };
    this.places.hidden = marks.length === 0;
    this.places.lastChild.replaceChildren(...marks.map((mark) => placeLine(mark, where(mark))));
    [...this.list.querySelectorAll("button")].forEach((button, number) => {
      button.setAttribute("aria-current", String(number === at));
    });
  }

  light(key) {
    this.overlay.light(key);
    for (const element of this.root.querySelectorAll(".word, .places li")) {
      element.classList.toggle("lit", Boolean(key) && element.dataset.key === key);
    }
  }
}

function filterCards(cards) {
  const box = document.getElementById("filter");
  const count = document.getElementById("count");
  const texts = answers.items.map(({ title, texts: lines }) =>
    [title, ...lines.map(({ text }) => text)].join("\n").toLowerCase());
  const say = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    cards.forEach((card, at) => {
      const fits = words.every((word) => texts[at].includes(word));
      card.root.hidden = !fits;
      shown += fits;
    });
    count.textContent = words.length ? `${shown} of ${cards.length}` : `${cards.length} photos`;
  };
  box.addEventListener("input", say);
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  say();
}

async function showCards() {
  const cardOf = new WeakMap();
  const observer = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      cardOf.get(target).fill();
    }
  }, { rootMargin: "1200px 0px" });
  const cards = [];
  for (const answer of answers.items) {
    const card = new Card(answer);
    cards.push(card);
    cardOf.set(card.root, card);
    shelf.append(card.root);
    observer.observe(card.root);
    // What is on the screen is shown before the thousandth card is made.
    if (cards.length % 40 === 0) await new Promise((resolve) => { setTimeout(resolve); });
  }
  if (cards.length > 8) filterCards(cards);
  document.documentElement.dataset.ready = "true";
}

if (answers.clip) shelf.append(new Clip(answers.clip).root);
else showCards();
