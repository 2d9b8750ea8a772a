// Words that point apart, as in deixis/answering/apart.py and several.py: which words name a thing, no two things on
// one box, several boxes of a plural.
import { NOUNS } from "./reading.js";

const [SHARED, ELSEWHERE, NEARLY, MANY] = [0.8, 0.5, 0.2, 6];
const [SHARE, OVERLAP, INSIDE] = [0.5, 0.3, 0.7];

const area = ([x1, y1, x2, y2]) => Math.max(0, x2 - x1) * Math.max(0, y2 - y1);
const shared = (a, b) => area([Math.max(a[0], b[0]), Math.max(a[1], b[1]), Math.min(a[2], b[2]), Math.min(a[3], b[3])]);
const iou = (a, b) => shared(a, b) / Math.max(area(a) + area(b) - shared(a, b), 1e-9);
const insideShare = (a, b) => shared(a, b) / Math.max(area(a), 1e-9);

export class Apart {
  constructor(rules) {
    this.numbers = new Map(Object.entries(rules.numbers));
    for (const name of ["pairs", "no_thing", "plural_words"]) this[name] = new Set(rules[name]);
  }

  /** The token that names the thing of a phrase, or null. */
  thingWord({ tokens }, { last, head }) {
    const inside = tokens.map((_, at) => at).slice(head + 1, last);
    const group = inside.some((at) => tokens[at].text.toLowerCase() === "of");
    const thing = group ? inside.findLast((at) => NOUNS.has(tokens[at].tag)) ?? head : head;
    return this.no_thing.has(tokens[thing].text.toLowerCase()) ? null : thing;
  }

  /** Where nouns begin that name nothing of their own. */
  withoutThing(sentence) {
    const found = new Set();
    for (const phrase of sentence.phrases) {
      const inside = sentence.tokens.map((_, at) => at).slice(phrase.first, phrase.last);
      const owners = inside.findLast((at) => sentence.tokens[at].tag === "POS") ?? phrase.first;
      const nouns = inside.filter((at) => NOUNS.has(sentence.tokens[at].tag) && at >= owners);
      const thing = this.thingWord(sentence, phrase);
      for (const at of [...nouns, phrase.head]) if (at !== thing) found.add(sentence.tokens[at].start);
    }
    return found;
  }

  /** How many boxes a phrase may have. */
  howMany(sentence, phrase) {
    const said = sentence.tokens.slice(phrase.first, phrase.last).map((token) => token.text.toLowerCase());
    const number = said.find((word) => this.numbers.has(word));
    if (number !== undefined) return this.numbers.get(number);
    const thing = sentence.tokens[this.thingWord(sentence, phrase) || phrase.head];
    const plural = thing.tag === "NNS" || thing.tag === "NNPS" || this.plural_words.has(thing.text.toLowerCase());
    if (!plural) return 1;
    return said.some((word) => this.pairs.has(word)) ? 2 : MANY;
  }

  /** Let the phrases of one sentence point at different boxes: the surest first. */
  point(sentence, answers) {
    const settled = [...answers];
    const taken = [];
    const order = answers.map((_, at) => at).sort((a, b) => answers[b].score - answers[a].score || a - b);
    for (const at of order) {
      if (!settled[at].found) continue;
      if (overlaps(settled[at].boxes[0], taken, SHARED)) settled[at] = elsewhere(settled[at], taken);
      settled[at] = withFurtherBoxes(settled[at], this.howMany(sentence, sentence.phrases[at]));
      if (settled[at].found) taken.push(...settled[at].boxes);
    }
    return settled;
  }
}

const overlaps = (box, taken, least) => taken.some((other) => iou(box, other) > least);

function elsewhere(answer, taken) {
  const best = answer.ranked[0]?.share ?? 0;
  const found = answer.ranked.find(({ box, share }) => share >= NEARLY * best && !overlaps(box, taken, ELSEWHERE));
  if (!found) return { ...answer, found: false };
  const score = (answer.score * found.share) / Math.max(best, found.share, 1e-9);
  return { ...answer, boxes: [found.box], score, ranked: [found, ...answer.ranked.filter((other) => other !== found)] };
}

function withFurtherBoxes(phrase, most) {
  if (most <= 1 || !phrase.found || phrase.boxes.length !== 1 || phrase.ranked.length < 2) return phrase;
  const kept = [phrase.boxes[0]];
  for (const { box, share } of phrase.ranked.slice(1)) {
    if (kept.length === most || share < SHARE * phrase.ranked[0].share) break;
    if (!kept.some((other) => sameThing(box, other))) kept.push(box);
  }
  return { ...phrase, boxes: kept };
}

const sameThing = (a, b) => iou(a, b) > OVERLAP || Math.max(insideShare(a, b), insideShare(b, a)) > INSIDE;
