// One answer beside its picture: the sentence, its boxes, phrases that were looked for, and saving all of it.
import { Overlay, drawHeat, paint, place } from "./marks.js";
import { ask, save } from "./api.js";

const percent = (value) => `${Math.round(100 * value)} %`;

export class Panel {
  /** `choices` are the models and methods to choose from; `changed` is told when another one is chosen. */
  constructor(choices, chosen, changed) {
    this.root = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    const find = (selector) => this.root.querySelector(selector);
    this.parts = {
      which: find(".which"), select: find(".which select"), stage: find(".stage"), media: find(".media"),
      heat: find("canvas"), wait: find(".wait"), time: find(".time"), play: find(".play"), range: find(".time input"),
      clock: find(".time output"), sentence: find(".sentence"), segments: find(".segments"), found: find(".found"),
      places: find(".places"), save: find(".save"),
    };
    this.overlay = new Overlay(find("svg.boxes"));
    this.choices = choices;
    this.parts.select.replaceChildren(...choices.map((choice, at) => new Option(choice.label, at)));
    this.parts.select.value = String(chosen);
    this.parts.select.addEventListener("change", () => changed(this));
    this.showsHeat = false;
    this.#listen();
    this.clear();
  }

  get choice() {
    return this.choices[Number(this.parts.select.value)] || this.choices[0];
  }

  clear() {
    this.captions = [];
    this.current = 0;
    this.look = null;
    this.phrases = [];
    this.kept = null;
    this.overlay.draw([], [1, 1]);
    this.parts.heat.classList.remove("on");
    for (const name of ["found", "places", "save", "segments", "time"]) this.parts[name].hidden = true;
    this.parts.sentence.replaceChildren();
  }

  wait(on) {
    this.parts.wait.hidden = !on;
    this.root.setAttribute("aria-busy", String(on));
  }

  /** Show a photo or a clip that is in the browser already. */
  showMedia(file, address) {
    this.clear();
    this.file = file;
    const clip = file.type.startsWith("video/");
    const media = document.createElement(clip ? "video" : "img");
    if (clip) Object.assign(media, { muted: true, playsInline: true, preload: "auto", loop: true });
    else media.alt = "";
    media.src = address;
    this.media = media;
    this.parts.media.replaceChildren(media);
    if (clip) this.#listenToClip(media);
  }

  /** Show an answer: a look at a photo, or the captions of a clip's segments. */
  showAnswer(answer) {
    this.look = Array.isArray(answer) ? null : answer;
    this.captions = Array.isArray(answer) ? answer : [answer.caption];
    this.parts.save.hidden = this.captions.length === 0;
    for (const button of this.parts.save.querySelectorAll("button")) {
      button.hidden = this.isClip && button.dataset.format !== "json";
    }
    this.#segments();
    this.#showCaption(0);
    if (!this.isClip) this.media.alt = this.captions[0].text;
    else this.media.setAttribute("aria-label", this.captions.map((caption) => caption.text).join(" "));
  }

  get isClip() {
    return this.media instanceof HTMLVideoElement;
  }

  get caption() {
    return this.captions[this.current];
  }

  showPhrases(phrases) {
    this.phrases = phrases;
    this.#marks();
    this.#phraseList();
    this.#draw();
  }

  showHeat(on) {
    this.showsHeat = on;
    for (const word of this.parts.sentence.querySelectorAll("span.word")) {
      if (on && this.look) word.tabIndex = 0;
      else word.removeAttribute("tabindex");
    }
    this.light(this.lit || null);
  }

  // Everything with a key lights up together: word, boxes, line of the list. A click keeps it lit.
  light(key) {
    this.lit = key;
    this.overlay.light(key);
    for (const element of this.root.querySelectorAll("[data-key]")) {
      if (!(element instanceof SVGElement)) element.classList.toggle("lit", element.dataset.key === key);
    }
    const at = key && key.startsWith("word ") ? Number(key.slice(5)) : -1;
    const heat = this.showsHeat && this.look && at >= 0 && this.look.attention[at];
    if (heat) drawHeat(this.parts.heat, this.look.regions, this.look.attention[at], this.caption.size);
    this.parts.heat.classList.toggle("on", Boolean(heat));
  }

  #listen() {
    const keyOf = (event) => event.target.closest?.("[data-key]")?.dataset.key ?? null;
    const over = (event) => this.light(keyOf(event) ?? this.kept);
    for (const name of ["pointerover", "focusin"]) {
      this.root.addEventListener(name, (event) => {
        if (!this.parts.stage.contains(event.target)) over(event);
      });
    }
    this.root.addEventListener("focusout", () => this.light(this.kept));
    this.root.addEventListener("pointerleave", () => this.light(this.kept));
    this.parts.stage.addEventListener("pointermove", (event) => {
      const key = this.overlay.under(event.clientX, event.clientY) ?? this.kept;
      if (key !== this.lit) this.light(key);
    });
    this.parts.stage.addEventListener("pointerleave", () => this.light(this.kept));
    this.root.addEventListener("click", (event) => {
      const inPicture = this.parts.stage.contains(event.target);
      const key = inPicture ? this.overlay.under(event.clientX, event.clientY) : keyOf(event);
      if (key === null && !inPicture) return;
      this.kept = key === this.kept ? null : key;
      this.light(this.kept ?? (event.pointerType === "touch" ? null : key));
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.kept = null;
      this.light(null);
    });
    this.parts.save.addEventListener("click", (event) => {
      const format = event.target.dataset.format;
      if (format) this.#save(format, event.target);
    });
  }

  #listenToClip(video) {
    const { time, play, range, clock } = this.parts;
    const show = () => {
      if (!Number.isFinite(video.duration)) return;
      range.max = String(video.duration);
      range.value = String(video.currentTime);
      clock.textContent = `${video.currentTime.toFixed(1)} of ${video.duration.toFixed(1)} s`;
      range.setAttribute("aria-valuetext", clock.textContent);
      this.#moment(video.currentTime);
    };
    const follow = () => {
      show();
      if (!video.paused && video.isConnected) requestAnimationFrame(follow);
    };
    video.addEventListener("loadedmetadata", () => {
      time.hidden = false;
      show();
    });
    video.addEventListener("seeked", show);
    video.addEventListener("play", () => {
      play.textContent = "Pause";
      follow();
    });
    video.addEventListener("pause", () => {
      play.textContent = "Play";
    });
    play.onclick = () => (video.paused ? video.play() : video.pause());
    range.oninput = () => {
      video.currentTime = Number(range.value);
    };
  }

  #moment(seconds) {
    if (!this.captions.length) return;
    let at = this.captions.findIndex(({ segment }) => segment && seconds >= segment[0] && seconds < segment[1]);
    if (at < 0) at = this.current;
    if (at !== this.current) this.#showCaption(at);
    else this.#draw();
  }

  #segments() {
    const { segments } = this.parts;
    segments.hidden = this.captions.length < 2;
    segments.replaceChildren(...this.captions.map((caption) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      const [start, end] = caption.segment || [0, 0];
      button.textContent = `${start.toFixed(1)} to ${end.toFixed(1)} s: ${caption.text}`;
      button.addEventListener("click", () => {
        this.media.currentTime = start + 0.01;
      });
      item.append(button);
      return item;
    }));
  }

  #showCaption(at) {
    this.current = at;
    this.kept = null;
    this.#marks();
    this.#sentence();
    this.#places();
    this.#phraseList();
    this.#draw();
    this.showHeat(this.showsHeat);
    [...this.parts.segments.querySelectorAll("button")].forEach((button, number) => {
      button.setAttribute("aria-current", String(number === at));
    });
  }

  #marks() {
    const marks = [];
    this.caption?.words.forEach((word, at) => {
      if (!word.groundable || !word.boxes?.length) return;
      marks.push({ key: `word ${at}`, ...word, doubted: word.trusted === false, number: marks.length });
    });
    this.phrases.forEach((phrase, at) => {
      marks.push({ key: `phrase ${at}`, ...phrase, doubted: phrase.found === false, number: marks.length });
    });
    this.marks = marks;
  }

  #draw() {
    if (!this.caption) return;
    const time = this.isClip ? this.media.currentTime : 0;
    this.overlay.draw(this.marks, this.caption.size, this.isClip ? this.caption.frame_times : null, time);
  }

  #sentence() {
    const { text, words } = this.caption;
    const nodes = [];
    let at = 0;
    words.forEach((word, number) => {
      nodes.push(text.slice(at, word.start));
      const mark = this.marks.find(({ key }) => key === `word ${number}`);
      const element = document.createElement(mark ? "button" : "span");
      element.className = "word";
      element.dataset.key = `word ${number}`;
      element.textContent = text.slice(word.start, word.end);
      if (mark) {
        element.type = "button";
        paint(element, mark);
        element.classList.toggle("doubted", mark.doubted);
        element.setAttribute("aria-description", this.#where(mark));
      }
      nodes.push(element);
      at = word.end;
    });
    this.parts.sentence.replaceChildren(...nodes, text.slice(at));
  }

  #where(mark) {
    const places = mark.boxes.slice(0, 3).map((box) => place(box, this.caption.size));
    const more = mark.boxes.length > 3 ? `, and ${mark.boxes.length - 3} more` : "";
    const sure = mark.presence !== undefined && mark.presence !== null ? `; ${percent(mark.presence)} likely there` : "";
    return (mark.doubted ? "doubtful: " : "") + places.join("; and ") + more + sure;
  }

  #places() {
    const words = this.marks.filter(({ key }) => key.startsWith("word "));
    this.parts.places.hidden = words.length === 0;
    this.parts.places.querySelector("ul").replaceChildren(...words.map((mark) => {
      const item = document.createElement("li");
      item.dataset.key = mark.key;
      paint(item, mark);
      const name = document.createElement("b");
      name.textContent = mark.text;
      const where = document.createElement("span");
      where.textContent = this.isClip ? `in ${mark.boxes.length} frames; ${this.#where({ ...mark, boxes: mark.boxes.slice(0, 1) })}` : this.#where(mark);
      item.append(name, where);
      return item;
    }));
  }

  #phraseList() {
    const phrases = this.marks.filter(({ key }) => key.startsWith("phrase "));
    this.parts.found.hidden = phrases.length === 0;
    this.parts.found.querySelector("ul").replaceChildren(...phrases.map((mark, at) => {
      const item = document.createElement("li");
      item.dataset.key = mark.key;
      if (!mark.doubted) paint(item, mark);
      const name = document.createElement("button");
      name.type = "button";
      name.className = "name";
      name.textContent = mark.text;
      const where = document.createElement("span");
      where.textContent = mark.doubted
        ? `probably not in the picture (${percent(mark.score)})`
        : `${place(mark.boxes[0], this.caption.size)} (${percent(mark.score)})`;
      const drop = document.createElement("button");
      drop.type = "button";
      drop.className = "drop";
      drop.textContent = "×";
      drop.setAttribute("aria-label", `Forget the phrase ${mark.text}`);
      drop.addEventListener("click", (event) => {
        event.stopPropagation();
        this.root.dispatchEvent(new CustomEvent("forget", { detail: at, bubbles: true }));
      });
      item.append(name, where, drop);
      return item;
    }));
  }

  async #save(format, button) {
    const stem = (this.file.name || "photo").replace(/\.[^.]*$/, "") || "photo";
    const answer = this.isClip ? this.captions : this.caption;
    if (format === "json") {
      save(new Blob([JSON.stringify(answer, null, 1)], { type: "application/json" }), `${stem}.json`);
      return;
    }
    button.disabled = true;
    try {
      const fields = { image: this.file, answer: JSON.stringify(answer), format };
      save(await (await ask("v1/draw", { fields })).blob(), `${stem}.${format}`);
    } catch (error) {
      this.root.dispatchEvent(new CustomEvent("problem", { detail: error, bubbles: true }));
    } finally {
      button.disabled = false;
    }
  }
}
