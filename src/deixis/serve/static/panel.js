// One answer beside its picture: the sentence, its boxes, phrases that were looked for, and saving all of it.
import { Overlay, describe, lightTogether, paint, percent, place, placeLine, sentence } from "../look/look.js";
import { Refused, ask, isClip, save } from "./api.js";
import { Correction } from "./correct.js";
import { drawHeat } from "./heat.js";

export class Panel {
  /** `choices` are the models and methods to choose from; `changed` is told when another one is chosen. */
  constructor(choices, chosen, changed) {
    this.root = document.getElementById("panel").content.firstElementChild.cloneNode(true);
    const find = (selector) => this.root.querySelector(selector);
    this.parts = {
      which: find(".which"), select: find(".which select"), stage: find(".stage"), media: find(".media"),
      heat: find("canvas"), wait: find(".wait"), time: find(".time"), play: find(".play"), range: find(".time input"),
      clock: find(".time output"), sentence: find(".sentence"), segments: find(".segments"), found: find(".found"),
      places: find(".words"), save: find(".save"), ask: find(".ask"), correcting: find(".correcting"),
      boxes: find("svg.boxes"), hands: find("svg.hands"),
    };
    this.overlay = new Overlay(find("svg.boxes"));
    this.choices = choices;
    this.parts.select.replaceChildren(...choices.map((choice, at) => new Option(choice.label, at)));
    this.parts.select.value = String(chosen);
    this.parts.select.addEventListener("change", () => changed(this));
    this.showsHeat = false;
    this.lights = lightTogether(this.root, () => [this.overlay], (key) => this.light(key));
    this.parts.save.addEventListener("click", (event) => {
      const format = event.target.dataset.format;
      if (format) this.#save(format, event.target);
      else if (event.target.classList.contains("correct")) this.#correct();
    });
    this.clear();
  }

  get choice() {
    return this.choices[Number(this.parts.select.value)] || this.choices[0];
  }

  clear() {
    this.captions = [];
    this.current = 0;
    this.look = null;
    this.found = [];
    this.marks = [];
    this.#showCorrecting(false);
    this.overlay.draw([], [1, 1]);
    this.lights.forget();
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
    const clip = isClip(file);
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
    this.#showCorrecting(false);
    this.look = Array.isArray(answer) ? null : answer;
    this.captions = Array.isArray(answer) ? answer : [answer.caption];
    this.parts.save.hidden = this.captions.length === 0;
    for (const button of this.parts.save.querySelectorAll("button")) {
      button.hidden = button.dataset.format === (this.isClip ? "png" : "mp4");
    }
    this.#segments();
    this.#showCaption(0);
    if (!this.isClip) this.media.alt = this.captions[0].text;
    else this.media.setAttribute("aria-label", this.captions.map((caption) => caption.text).join(" "));
    if (this.media.error) {
      const told = new Refused(0, "This browser cannot play the clip; its sentences are here all the same.");
      this.root.dispatchEvent(new CustomEvent("problem", { detail: told, bubbles: true }));
    }
  }

  get isClip() {
    return this.media instanceof HTMLVideoElement;
  }

  get caption() {
    return this.captions[this.current];
  }

  /** The phrases that were looked for, in the part that is shown. */
  get phrases() {
    return this.found[this.current] ?? [];
  }

  /** Show phrases: a list of them for each segment, of which a photo has one. */
  showPhrases(found) {
    this.found = found;
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

  /** Light up everything that belongs to a thing, and warm up where its word looked. */
  light(key) {
    this.lit = key;
    this.overlay.light(key);
    for (const element of this.root.querySelectorAll("[data-key]")) {
      if (!(element instanceof SVGElement)) element.classList.toggle("lit", element.dataset.key === key);
    }
    const at = key && key.startsWith("word ") ? Number(key.slice(5)) : -1;
    const heat = this.showsHeat && this.look && at >= 0 && this.look.attention[at];
    if (heat) drawHeat(this.parts.heat, this.look.regions, this.look.attention[at], this.caption.size);
    this.parts.stage.classList.toggle("looking", Boolean(heat));
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
    this.lights.forget();
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
    const { text, words, size } = this.caption;
    const units = unitsOf(text);
    const spans = words.map((word, at) => [units[word.start], units[word.end], `word ${at}`]);
    const marks = new Map(this.marks.map((mark) => [mark.key, mark]));
    this.parts.sentence.replaceChildren(...sentence(text, spans, marks, size));
  }

  #places() {
    const words = this.marks.filter(({ key }) => key.startsWith("word "));
    this.parts.places.hidden = words.length === 0;
    this.parts.places.querySelector("ul").replaceChildren(...words.map((mark) => {
      if (!this.isClip) return placeLine(mark, describe(mark, this.caption.size));
      const first = describe({ ...mark, boxes: mark.boxes.slice(0, 1) }, this.caption.size);
      return placeLine(mark, `in ${mark.boxes.length} frames; first ${first}`);
    }));
  }

  #phraseList() {
    const phrases = this.marks.filter(({ key }) => key.startsWith("phrase "));
    this.parts.found.hidden = phrases.length === 0;
    this.parts.found.querySelector("ul").replaceChildren(...phrases.map((mark) => {
      const item = document.createElement("li");
      item.dataset.key = mark.key;
      if (!mark.doubted) paint(item, mark);
      const name = document.createElement("button");
      name.type = "button";
      name.className = "name";
      name.textContent = mark.text;
      const where = document.createElement("span");
      where.textContent = mark.doubted
        ? `probably not in ${this.isClip ? "this part of the clip" : "the picture"}` // its score would be that of the box if it were there
        : `${this.isClip ? `in ${mark.boxes.length} frames; first ` : ""}${place(mark.boxes[0], this.caption.size)}; ${
          percent(mark.score)} sure of the box`;
      const drop = document.createElement("button");
      drop.type = "button";
      drop.className = "drop";
      drop.textContent = "×";
      drop.setAttribute("aria-label", `Forget the phrase ${mark.text}`);
      drop.addEventListener("click", (event) => {
        event.stopPropagation();
        this.root.dispatchEvent(new CustomEvent("forget", { detail: mark.text, bubbles: true }));
      });
      item.append(name, where, drop);
      return item;
    }));
  }

  /** Let a person correct the answer that is shown. */
  #correct() {
    this.media.pause?.();
    this.lights.forget();
    this.#showCorrecting(true);
    const leave = () => {
      this.#showCorrecting(false);
      this.#showCaption(this.current);
      this.parts.save.querySelector(".correct").focus();
    };
    const say = (text) => this.root.dispatchEvent(new CustomEvent("say", { detail: text, bubbles: true }));
    const done = (caption, phrases) => {
      if (this.look) {
        const kept = this.caption.words.flatMap((word, at) => (correction.texts[at] ? [this.look.attention[at]] : []));
        this.look = { ...this.look, caption, attention: kept };
      }
      this.captions[this.current] = caption;
      this.found[this.current] = phrases;
      this.#segments();
      leave();
      this.root.dispatchEvent(new CustomEvent("corrected", { detail: this, bubbles: true }));
    };
    const fresh = this.parts.hands.cloneNode(false); // nothing listens to it yet
    this.parts.hands.replaceWith(fresh);
    this.parts.hands = fresh;
    const hands = this.isClip ? null : fresh;
    const correction = new Correction(this.parts.correcting, hands, this.caption, this.phrases, { done, cancel: leave, say });
  }

  #showCorrecting(on) {
    this.root.classList.toggle("corrects", on);
    this.parts.correcting.hidden = !on;
    if (!on) this.parts.correcting.replaceChildren();
    this.parts.hands.toggleAttribute("hidden", !on || this.isClip);
    this.parts.boxes.toggleAttribute("hidden", on && !this.isClip);
  }

  #phraseAnswer() {
    const { image, size, model } = this.caption;
    return { deixis: 1, kind: "phrases", image, size, sentence: null, model, phrases: this.phrases };
  }

  async #save(format, button) {
    const stem = (this.file.name || "photo").replace(/\.[^.]*$/, "") || "photo";
    const answer = this.isClip ? this.captions : this.caption;
    if (format === "json") {
      const all = this.phrases.length && !this.isClip ? [answer, this.#phraseAnswer()] : answer;
      save(new Blob([JSON.stringify(all, null, 1)], { type: "application/json" }), `${stem}.json`);
      return;
    }
    button.disabled = true;
    try {
      const fields = { [this.isClip ? "clip" : "image"]: this.file, answer: JSON.stringify(answer), format };
      save(await (await ask("v1/draw", { fields })).blob(), `${stem}.${format}`);
    } catch (error) {
      this.root.dispatchEvent(new CustomEvent("problem", { detail: error, bubbles: true }));
    } finally {
      button.disabled = false;
    }
  }
}

/** Where each character begins for JavaScript, which counts those beyond the first 65,536 (emoji) as two. */
function unitsOf(text) {
  const units = [0];
  for (const letter of text) units.push(units[units.length - 1] + letter.length);
  return units;
}
