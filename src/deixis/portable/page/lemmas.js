// Plain forms of English words, as deixis/text/rules/lemmas.py has them; the lists of exceptions come from rules.json.

const ends = (word, ...endings) => endings.some((ending) => word.endsWith(ending));
const isVowel = (letter) => letter !== undefined && "aeiou".includes(letter);

export class Lemmas {
  constructor(rules) {
    this.irregularNouns = new Map(Object.entries(rules.irregular_nouns));
    this.unchangedNouns = new Set(rules.unchanged_nouns);
    this.irregularVerbs = new Map(Object.entries(rules.irregular_verbs));
  }

  /** The singular of a noun in lower case. */
  noun(word) {
    const known = this.irregularNouns.get(word);
    if (known !== undefined) return known;
    if (ends(word, "men", "children") && word.length > 5) {
      return word.endsWith("men") ? `${word.slice(0, -2)}an` : word.slice(0, -3);
    }
    if (this.unchangedNouns.has(word) || word.length < 4 || !word.endsWith("s") || ends(word, "ss", "us", "'s")) return word;
    if (word.endsWith("shelves")) return `${word.slice(0, -3)}f`;
    if (word.endsWith("ies")) return word.length > 4 ? `${word.slice(0, -3)}y` : word.slice(0, -1);
    return word.slice(0, ends(word, "sses", "shes", "ches", "xes", "zzes", "oes") ? -2 : -1);
  }

  /** The plain form of a verb form in lower case. */
  verb(word) {
    const known = this.irregularVerbs.get(word);
    if (known !== undefined) return known;
    for (const ending of ["ing", "ed"]) {
      const stem = word.slice(0, -ending.length);
      if (word.endsWith(ending) && stem.length >= 2 && /[aeiouy]/.test(stem)) return plain(stem, ending);
    }
    if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
    if (ends(word, "sses", "shes", "ches", "xes", "zzes", "oes")) return word.slice(0, -2);
    return word.endsWith("s") && !ends(word, "ss", "us", "is") && word.length > 3 ? word.slice(0, -1) : word;
  }
}

/** The -ing form of a plain verb. */
export function gerund(verb) {
  if (verb.endsWith("ie")) return `${verb.slice(0, -2)}ying`;
  if (verb.endsWith("e") && !ends(verb, "ee", "oe", "ye") && verb.length > 2) return `${verb.slice(0, -1)}ing`;
  return doubles(verb) ? `${verb}${verb.at(-1)}ing` : `${verb}ing`;
}

function doubles(stem) {
  if (stem.length < 3 || "aeiouwxy".includes(stem.at(-1)) || !isVowel(stem.at(-2)) || isVowel(stem.at(-3))) {
    return ["quit", "equip", "squat"].includes(stem);
  }
  return [...stem].filter(isVowel).length === 1 || ["begin", "forget", "snowplow"].includes(stem);
}

const LOST_E = ["dg", "rs", "ns", "bl", "dl", "gl", "kl", "pl", "tl", "zl", "rg", "ang", "ung", "ud"];
const SHORT = ["at", "id", "ok", "ak", "os", "us", "ut", "ir", "ar"];

function plain(stem, ending) {
  const last = stem.at(-1);
  if (ending === "ed" && last === "i") return `${stem.slice(0, -1)}y`;
  if (stem.length > 2 && last === stem.at(-2) && !"aeiouflsz".includes(last)) return stem.slice(0, -1);
  if ("cvuz".includes(last) || ends(stem, ...LOST_E)) {
    return ["hang", "bang", "clang", "thud"].includes(stem) ? stem : `${stem}e`;
  }
  const short = !"aeiouwxy".includes(last) && isVowel(stem.at(-2)) && (stem.length < 3 || !isVowel(stem.at(-3)));
  return short && (doubles(stem) || ends(stem, ...SHORT)) ? `${stem}e` : stem;
}
