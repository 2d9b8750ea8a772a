// A sentence as the grounder reads it: tokens, tags and noun phrases, by the rules of deixis/text/rules/chunker.py.
// The pattern of tokens and the lists of words come from there too, in rules.json.
import { Lemmas, gerund } from "./lemmas.js";

const set = (text) => new Set(text.split(" "));
export const NOUNS = set("NN NNS NNP NNPS");
export const ADJECTIVES = set("JJ JJR JJS");
export const VERBS = set("VB VBD VBG VBN VBP VBZ");
const OPENS = new Set(["DT", "PRP$", "CD", "POS", "PDT", ...ADJECTIVES]);
const MODIFIES = new Set([...OPENS, ...NOUNS]);
const AFTER_ADJECTIVE = set("VBG VBN VBD CC , RB");
const AFTER_VERB = set("DT IN PRP$ TO RB RP PRP");
const PARTICIPLES = set("VBG VBN VBD");
const OWNERS = set("DT PRP$");
const NO_PHRASE = set("WP WDT EX WRB");
const isAlnum = (text) => /[\p{L}\p{N}]/u.test(text);

/** A token as vocabularies hold it, or null for punctuation. */
export function normalWord(token) {
  const word = token.toLowerCase().replaceAll("’", "'");
  return word === "&" || isAlnum(word) ? word : null;
}

export class Reader {
  /** `words` is a vocabulary: `entry(word)` gives what is known of a word. */
  constructor(rules, words) {
    this.words = words;
    this.token = new RegExp(rules.token, "gu");
    this.closed = new Map(Object.entries(rules.closed));
    this.lemmas = new Lemmas(rules);
    for (const name of ["be", "group_nouns", "places", "before_place"]) this[name] = new Set(rules[name]);
  }

  tokenise(text) {
    return [...text.matchAll(this.token)].map((found) => ({
      text: found[0], start: found.index, end: found.index + found[0].length,
    }));
  }

  /** A text with its tokens and their tags, and its noun phrases; or, as one phrase, all of it. */
  read(text, { asPhrase = false } = {}) {
    const tokens = this.tokenise(text);
    const words = tokens.map((token) => normalWord(token.text) ?? token.text);
    const tags = this.tags(words);
    tags.forEach((tag, at) => { tokens[at].tag = tag; });
    const whole = { first: 0, last: tokens.length, head: spans(tags)[0]?.head ?? tokens.length - 1 };
    const phrases = asPhrase ? [whole] : this.#phrases(words, tags);
    return { text, tokens, phrases };
  }

  tags(words) {
    const tags = words.map((word) => this.#usual(word));
    words.forEach((word, at) => {
      const tag = tags[at];
      const before = tags[at - 1] ?? "";
      const after = tags[at + 1] ?? "";
      if (tag === "POS" && ["EX", "PRP", "WP", "WDT"].includes(before)) tags[at] = "VBZ";
      else if (word === "her" && !MODIFIES.has(after) && !PARTICIPLES.has(after)) tags[at] = "PRP";
      else if (word === "to" && MODIFIES.has(after) && !this.#couldBeVerb(words[at + 1])) tags[at] = "IN";
      else if (word === "back" && VERBS.has(before)) tags[at] = "RB";
      else if (this.closed.has(word)) return;
      else if (tag === "NN" || tag === "NNS") tags[at] = this.#nounOrVerb(words, tags, at, before, after);
      else if (tag === "VB" || tag === "VBP" || tag === "VBZ") tags[at] = verbOrNoun(words, tags, at, before);
      else if (PARTICIPLES.has(tag)) tags[at] = participle(tags, at, before, after);
      else if (ADJECTIVES.has(tag) && OWNERS.has(before) && !MODIFIES.has(after) && !AFTER_ADJECTIVE.has(after)) tags[at] = "NN";
    });
    return tags;
  }

  #usual(word) {
    const closed = this.closed.get(word);
    if (closed !== undefined) return closed;
    const tag = this.words.entry(word)?.tag;
    if (tag) return tag;
    if (!isAlnum(word)) return word;
    if (/^\p{Nd}/u.test(word)) return /\p{Nd}$/u.test(word) ? "CD" : "JJ";
    if (/(ly|wards)$/.test(word)) return "RB";
    if (word.endsWith("ing") && word.length > 5) return "VBG";
    if (word.endsWith("ed") && word.length > 4) return word.includes("-") ? "JJ" : "VBN";
    if (/-(year|old|style|size|like|way|free)$/.test(word)) return "JJ";
    return word === this.lemmas.noun(word) ? "NN" : "NNS";
  }

  #couldBeVerb(word) {
    const tag = this.words.entry(gerund(this.lemmas.verb(word)))?.tag;
    return tag === "VBG" || tag === "NN";
  }

  #nounOrVerb(words, tags, at, before, after) {
    const [word, tag, wordBefore] = [words[at], tags[at], words[Math.max(0, at - 1)]];
    if (word.endsWith("ing") && at > 0 && this.be.has(wordBefore)) return "VBG";
    const relative = before === "PRP" || ["that", "who", "which"].includes(wordBefore);
    if (tag === "NNS" && relative && AFTER_VERB.has(after)) return "VBZ";
    if (tag === "NNS" && before === "NN" && OWNERS.has(after)) return "VBZ";
    if (!this.#couldBeVerb(word)) return tag;
    if (tag === "NNS" && before === "NN" && (AFTER_VERB.has(after) || after === "NNS")) return "VBZ";
    if (tag === "NN" && (before === "NNS" || wordBefore === "people") && AFTER_VERB.has(after)) return "VBP";
    return tag === "NN" && before === "TO" && AFTER_VERB.has(after) ? "VB" : tag;
  }

  /** Noun chunks to phrases: groups joined with what they are groups of, places ("in front of") left out. */
  #phrases(words, tags) {
    const joined = [];
    for (const chunk of spans(tags)) {
      if (NO_PHRASE.has(tags[chunk.head]) || this.#isPlace(words, chunk)) continue;
      const last = joined.at(-1);
      if (last && last.last + 1 === chunk.first && words[chunk.first - 1] === "of" && this.group_nouns.has(words[last.head])) {
        last.last = chunk.last;
      } else joined.push({ ...chunk });
    }
    return joined;
  }

  #isPlace(words, { first, last, head }) {
    return last === head + 1 && head - first <= 1 && first > 0 && this.before_place.has(words[first - 1])
      && this.places.has(words[head]) && words[head + 1] === "of";
  }
}

function verbOrNoun(words, tags, at, before) {
  const noun = words[at].endsWith("s") && !words[at].endsWith("ss") ? "NNS" : "NN";
  const opened = at > 1 && OPENS.has(tags[at - 2]);
  if (["DT", "PRP$", "POS"].includes(before) || (ADJECTIVES.has(before) && opened)) return noun;
  const listed = tags.slice(Math.max(0, at - 5), at).includes("CC");
  return tags[at] !== "VBZ" && before === "NN" && opened && !listed ? noun : tags[at];
}

function participle(tags, at, before, after) {
  const modifies = NOUNS.has(after) || ADJECTIVES.has(after);
  if (OPENS.has(before) && before !== "POS" && (modifies || after === "VBG" || after === "VBN")) return "JJ";
  const covered = (before === "RB" || before === "NN") && NOUNS.has(after) && at > 1 && OWNERS.has(tags[at - 2]);
  if (covered && tags[at] !== "VBG") return "JJ";
  if (OWNERS.has(before) && !modifies) return "NN";
  if (tags[at] === "VBN" && modifies && (at === 0 || ["IN", "CC", ","].includes(before))) return "JJ";
  return tags[at];
}

/** Noun chunks as first, last (not included) and head. */
function spans(tags) {
  const found = [];
  let at = 0;
  while (at < tags.length) {
    let end = at;
    let noun = -1;
    while (end < tags.length && continues(tags, at, end)) {
      if (NOUNS.has(tags[end])) noun = end;
      end += 1;
    }
    if (noun >= 0) found.push({ first: at, last: noun + 1, head: noun });
    else if (["PRP", "WP", "EX"].includes(tags[at])) found.push({ first: at, last: at + 1, head: at });
    at = noun >= 0 ? noun + 1 : at + 1;
  }
  return found;
}

/** Whether the token `at` belongs to a chunk that began at `start`. */
function continues(tags, start, at) {
  const tag = tags[at];
  const before = tags[at - 1] ?? "";
  const after = tags[at + 1] ?? "";
  const nounBefore = at > start && NOUNS.has(before);
  if (NOUNS.has(tag)) return true;
  if (tag === "POS") return nounBefore && (MODIFIES.has(after) || VERBS.has(after));
  if (nounBefore) return ADJECTIVES.has(tag) && NOUNS.has(after) && OWNERS.has(tags[start]);
  if (ADJECTIVES.has(tag) || tag === "CD") return true;
  if (tag === "DT" || tag === "PRP$" || tag === "PDT") return at === start || before === "PDT" || before === "POS";
  if (tag === "RB" || tag === "RBR" || tag === "RBS") {
    const opens = at === start && (at === 0 || before === "IN" || before === "CC");
    return ADJECTIVES.has(after) && (at > start || opens);
  }
  return (tag === "CC" || tag === ",") && at > start && ADJECTIVES.has(before) && ADJECTIVES.has(after);
}
