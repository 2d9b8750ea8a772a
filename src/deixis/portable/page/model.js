// An exported model in the browser: what deixis/portable/runner.py and grounder.py do, with onnxruntime-web.
import * as ort from "./ort/ort.wasm.bundle.min.mjs";
import { Apart } from "./apart.js";
import { fit } from "./pixels.js";
import { ADJECTIVES, NOUNS, Reader, VERBS, normalWord } from "./reading.js";

const PARTS = ["look", "begin", "step", "choose", "point", "match"];
const [PAD, BEGIN, END, UNKNOWN] = [0, 1, 2, 3];
const SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"];
const LONGEST_SENTENCE = 60;
const LONGEST_PHRASE = 2000;
const HALF = 0.5;
const TELLS = new Set([...NOUNS, ...ADJECTIVES, ...VERBS, "PRP", "CD"]);

const longs = (numbers, shape = [numbers.length]) => new ort.Tensor("int64", BigInt64Array.from(numbers, BigInt), shape);
const numbersOf = (tensor) => Array.from(tensor.data, Number);
const logistic = (level) => 1 / (1 + Math.exp(-Math.min(60, Math.max(-60, level))));

class Vocabulary {
  constructor({ words }) {
    this.words = [...SPECIAL, ...words.map(({ word }) => word)];
    this.entries = words;
    this.ids = new Map(this.words.map((word, id) => [word, id]));
  }

  has(word) { return this.ids.has(word); }
  id(word) { return this.ids.get(word) ?? UNKNOWN; }
  entry(word) { return this.entries[this.id(word) - SPECIAL.length] ?? null; }
}

export class Model {
  /** Load the folder that `deixis export-model --format page` wrote; `told` hears how much of it has come, 0 to 1. */
  static async load(folder, told = () => {}) {
    ort.env.wasm.wasmPaths = { wasm: new URL("./ort/ort-wasm-simd-threaded.wasm", import.meta.url).href };
    const manifest = await json(new URL("model.json", folder));
    const names = [...PARTS.map((part) => `${part}.onnx`), "captioner-vocabulary.json", "grounder-vocabulary.json"];
    const total = names.reduce((sum, name) => sum + manifest.files[name].bytes, 0);
    const model = new Model();
    model.manifest = manifest;
    model.sessions = {};
    let come = 0;
    for (const name of names) {
      const data = await read(new URL(name, folder), manifest.files[name], name);
      if (name.endsWith(".onnx")) model.sessions[name.slice(0, -5)] = await ort.InferenceSession.create(data);
      else model[name.startsWith("captioner") ? "said" : "words"] = new Vocabulary(JSON.parse(new TextDecoder().decode(data)));
      come += data.length;
      told(come / total);
    }
    const rules = await json(new URL("rules.json", folder));
    model.reader = new Reader(rules, model.words);
    model.apart = new Apart(rules);
    return model;
  }

  async run(part, values) {
    const session = this.sessions[part];
    return session.run(Object.fromEntries(session.inputNames.map((name) => [name, values[name]])));
  }

  /** Find the regions of a photo, { width, height, data } with three bytes a pixel. */
  async look(photo) {
    const small = fit(photo);
    const size = new ort.Tensor("float32", [photo.width, photo.height], [2]);
    const pixels = new ort.Tensor("uint8", small.data, [small.height, small.width, 3]);
    return { ...(await this.run("look", { pixels, size })), size };
  }

  /** Caption what was looked at: the sentence, and each word with its boxes and whether it is trusted. */
  async caption(seen) {
    let caption = await this.#search(seen);
    if (this.manifest.method === "grounder") caption = await this.#reground(caption, seen);
    return this.manifest.presence ? this.#checkWords(caption, seen) : this.#checkPhrases(caption, seen);
  }

  /** Find phrases in what was looked at, each by itself. */
  async ground(seen, phrases) {
    const found = [];
    for (const text of phrases) {
      if (!text.trim()) throw new Error("The phrase is empty: say what to look for, such as “a man”.");
      if (text.length > LONGEST_PHRASE) throw new Error(`The phrase has ${text.length} characters; at most ${LONGEST_PHRASE} are read.`);
      const sentence = this.reader.read(text, { asPhrase: true });
      const [answer] = await this.#phrases(seen, sentence);
      const telling = sentence.tokens.filter((token) => TELLS.has(token.tag));
      const known = telling.some((token) => this.words.has(normalWord(token.text)));
      found.push(known ? answer : { ...answer, found: false, score: 0, presence: answer.presence === null ? null : 0 });
    }
    return found;
  }

  async #search(seen) {
    const values = { ...seen, ...(await this.run("begin", seen)) };
    let steps = 0;
    for (let finished = false; steps < this.manifest.steps && !finished; steps += 1) {
      const after = await this.run("step", values);
      for (const [name, value] of Object.entries(after)) values[name.replace(/^next_/, "")] = value;
      finished = Boolean(after.finished.data[0]);
    }
    const out = await this.run("choose", { ...values, steps: longs([steps], []) });
    const ids = numbersOf(out.word_ids);
    const spoken = ids.slice(0, ids.includes(END) ? ids.indexOf(END) : ids.length).filter((id) => id !== PAD && id !== BEGIN);
    const { text, spans } = sentenceText(spoken.map((id) => this.said.words[id]));
    const words = spans.map(([start, end], at) => {
      const thing = Boolean(this.said.entries[ids[at] - SPECIAL.length]?.groundable);
      const boxes = thing ? [Array.from(out.word_boxes.data.slice(4 * at, 4 * at + 4))] : [];
      const score = thing ? out.word_shares.data[at] : 0;
      return { text: text.slice(start, end), start, end, boxes, score, groundable: thing, trusted: true, presence: null };
    });
    return { text, words, size: Array.from(seen.size.data), score: out.caption_score.data[0] };
  }

  async #reground(caption, seen) {
    const sentence = this.reader.read(caption.text);
    const answers = this.apart.point(sentence, await this.#phrases(seen, sentence));
    const nothing = this.apart.withoutThing(sentence);
    const words = caption.words.map((word) => {
      if (nothing.has(word.start)) return { ...word, groundable: false, boxes: [], score: 0 };
      const phrase = word.groundable ? phraseOf(word.start, answers) : null;
      return phrase ? { ...word, boxes: phrase.boxes, score: phrase.score, trusted: word.trusted && phrase.found } : word;
    });
    return { ...caption, words };
  }

  async #checkWords(caption, seen) {
    const { slope, offset, threshold } = this.manifest.presence;
    const things = caption.words.filter((word) => word.groundable).map((word) => word.text.toLowerCase());
    const known = [...new Set(things)].filter((word) => this.words.has(word));
    const asked = longs(known.map((word) => this.words.id(word)));
    const scores = known.length ? (await this.run("match", { ...seen, words: asked })).matches.data : [];
    const sure = new Map(known.map((word, at) => [word, logistic(slope * scores[at] + offset)]));
    const words = caption.words.map((word) => {
      const presence = word.groundable ? sure.get(word.text.toLowerCase()) : undefined;
      return presence === undefined ? word : { ...word, presence, trusted: word.trusted && presence >= threshold };
    });
    return { ...caption, words };
  }

  async #checkPhrases(caption, seen) {
    const answers = await this.#phrases(seen, this.reader.read(caption.text));
    const words = [];
    for (const word of caption.words) {
      let answer = word.groundable ? phraseOf(word.start, answers) : null;
      if (word.groundable && !answer) [answer] = await this.#phrases(seen, this.reader.read(word.text));
      const sure = answer && answer.found && answer.score >= HALF;
      words.push(answer ? { ...word, presence: answer.score, trusted: word.trusted && sure } : word);
    }
    return { ...caption, words };
  }

  /** The boxes of a sentence's phrases, each with what its calibration says. */
  async #phrases(seen, sentence) {
    const { ids, tags, spans } = this.#encode(sentence);
    const asked = { words: longs([...ids, END]), tags: longs([...tags, 0]) };
    for (const key of ["first", "last", "head"]) asked[key] = longs(spans.map((span) => span[key]));
    const out = spans.length ? await this.run("point", { ...seen, ...asked }) : null;
    const [width, height] = seen.size.data;
    return sentence.phrases.map((phrase, number) => {
      const [start, end] = [sentence.tokens[phrase.first]?.start ?? 0, sentence.tokens[phrase.last - 1]?.end ?? 0];
      const text = sentence.text.slice(start, end);
      const at = spans.findIndex((span) => span.number === number);
      if (at < 0) return { text, start, end, boxes: [[0, 0, width, height]], ranked: [], score: 0, found: false, presence: null };
      return { text, start, end, ...this.#answer(out, at) };
    });
  }

  #answer(out, at) {
    const most = out.ranked_shares.dims[1];
    const ranked = Array.from({ length: most }, (_, rank) => ({
      box: Array.from(out.ranked_boxes.data.slice(4 * (at * most + rank), 4 * (at * most + rank) + 4)),
      share: out.ranked_shares.data[at * most + rank],
    }));
    const answer = { boxes: [ranked[0].box], ranked, score: ranked[0].share, found: true, presence: null };
    const curves = this.manifest.calibration;
    if (!curves) return answer;
    const asked = curves.right.weights.length;
    const curve = ({ weights, bias }) =>
      logistic(weights.reduce((sum, weight, k) => sum + weight * out.signals.data[at * asked + k], bias));
    const presence = curve(curves.found);
    return { ...answer, score: curve(curves.right), presence, found: presence >= curves.threshold };
  }

  /** Words as ids, what kind each is, and phrases as places of words; see deixis/data/encode.py. */
  #encode(sentence) {
    const place = new Map();
    const [ids, tags, spans] = [[], [], []];
    for (const [at, token] of sentence.tokens.entries()) {
      const word = normalWord(token.text);
      if (word === null) continue;
      if (ids.length === LONGEST_SENTENCE) break;
      place.set(at, ids.length);
      ids.push(this.words.id(word));
      tags.push(NOUNS.has(token.tag) ? 1 : VERBS.has(token.tag) ? 2 : ADJECTIVES.has(token.tag) ? 3 : 0);
    }
    sentence.phrases.forEach(({ first, last, head }, number) => {
      const inside = [];
      for (let at = first; at < last; at += 1) if (place.has(at)) inside.push(place.get(at));
      if (inside.length && place.has(head)) {
        spans.push({ number, first: inside[0], last: inside.at(-1) + 1, head: place.get(head) });
      }
    });
    return { ids, tags, spans };
  }
}

/** Words joined into a sentence with a capital and a full stop, and where each of them stands. */
export function sentenceText(words) {
  let text = "";
  const spans = words.map((word) => {
    const joins = (word.startsWith("'") && word.length > 1 && word !== "'n'") || word === "n't";
    if (text && !joins) text += " ";
    text += word;
    return [text.length - word.length, text.length];
  });
  if (!text) return { text, spans: [] };
  const first = text[0].toUpperCase();
  return { text: `${first.length === 1 ? first : text[0]}${text.slice(1)}.`, spans };
}

const phraseOf = (place, phrases) => phrases.find(({ start, end }) => start <= place && place < end) ?? null;

async function answered(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url.pathname} cannot be read (status ${answer.status}): copy the whole folder to the server.`);
  return answer;
}

const json = async (url) => (await answered(url)).json();

/** A file of the model, if it is the one that model.json lists. */
async function read(url, expected, name) {
  const data = new Uint8Array(await (await answered(url)).arrayBuffer());
  if (data.length < expected.bytes) throw new Error(`${name} is cut short: ${data.length} of ${expected.bytes} bytes. Export the model again.`);
  if (globalThis.crypto?.subtle) { // only pages of https or of this machine have it
    const hash = Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", data)), (byte) => byte.toString(16).padStart(2, "0"));
    if (hash.join("") !== expected.sha256) throw new Error(`${name} is not the file that model.json lists. Export the model again.`);
  }
  return data;
}
