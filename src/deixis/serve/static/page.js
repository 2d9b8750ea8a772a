// The page: choosing a photo or a clip, asking the server, and the panels with its answers.
import { percent } from "../look/look.js";
import { startAlbum } from "./album.js";
import { Refused, ask, isClip } from "./api.js";
import { startCamera } from "./camera.js";
import { History } from "./history.js";
import { addressIn, listenToIncoming, refusedAddress } from "./incoming.js";
import { Panel } from "./panel.js";

const $ = (id) => document.getElementById(id);
const EXAMPLES = [
  ["astronaut.jpg", "A woman in a space suit"],
  ["coffee.jpg", "A cup of coffee"],
  ["chelsea.jpg", "A cat"],
  ["raccoon.jpg", "A raccoon"],
  ["temple.jpg", "A temple with trees"],
  ["flower.jpg", "A flower"],
  ["rocket.jpg", "A rocket that starts"],
  ["officer.jpg", "A woman in uniform"],
];
const state = { file: null, address: null, panels: [], choices: [], limits: null, phrases: [], asked: null, visit: null };
const past = new History(showAgain);

async function start() {
  $("examples").replaceChildren(...EXAMPLES.map(exampleButton));
  try {
    const known = await (await ask("v1/models")).json();
    state.limits = known.limits;
    startAlbum(known.folder?.photos ?? 0, { choose, problem, say });
    state.choices = known.models.flatMap((model) => model.methods.map((method) => ({
      model: model.name, method, checks: model.checks,
      label: known.models.length > 1 || model.methods.length > 1 ? `${model.name} (${method})` : model.name,
      first: method === model.method,
    })));
  } catch (error) {
    problem(error);
    return;
  }
  if (!state.choices.length) {
    problem(new Refused(0, "The models of this server find phrases but write no sentences."));
    return;
  }
  $("compare-label").hidden = state.choices.length < 2;
  for (const id of ["check", "threshold"]) {
    $(id).closest("label").hidden = !state.choices.some((choice) => choice.checks);
  }
  state.panels = [addPanel(Math.max(0, state.choices.findIndex((choice) => choice.first)))];
  showChoices();
  listen();
  document.documentElement.dataset.ready = "true";
}

function exampleButton([file, about]) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const image = new Image(72, 54);
  image.src = `static/examples/${file}`;
  image.alt = about;
  button.append(image);
  button.addEventListener("click", async () => {
    const answer = await fetch(image.src);
    choose(new File([await answer.blob()], file, { type: "image/jpeg" }));
  });
  item.append(button);
  return item;
}

function addPanel(chosen) {
  const panel = new Panel(state.choices, chosen, (changed) => answer([changed]));
  $("panels").append(panel.root);
  return panel;
}

function listen() {
  $("file").addEventListener("change", () => {
    const [file] = $("file").files;
    if (file) choose(file);
    $("file").value = ""; // choosing the same file again should ask again
  });
  listenToIncoming(choose, problem);
  startCamera(choose);
  $("heat").addEventListener("change", () => state.panels.forEach((panel) => panel.showHeat($("heat").checked)));
  $("check").addEventListener("change", () => answer(state.panels));
  $("threshold").addEventListener("change", () => answer(state.panels));
  $("every").addEventListener("change", () => answer(state.panels));
  $("compare").addEventListener("change", compare);
  $("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = $("phrase").value.split(",").map((text) => text.trim()).filter(Boolean);
    if (!wanted.length || !state.file) return;
    const address = addressIn({ getData: () => $("phrase").value });
    if (address) {
      problem(refusedAddress(address));
      return;
    }
    state.phrases = [...new Set([...state.phrases, ...wanted])].slice(0, state.limits.phrases);
    $("phrase").value = "";
    find(state.panels, wanted);
  });
  $("others").addEventListener("toggle", alternatives);
  $("panels").addEventListener("forget", (event) => {
    state.phrases = state.phrases.filter((text) => text !== event.detail);
    for (const panel of state.panels) {
      panel.showPhrases(panel.found.map((part) => part.filter(({ text }) => text !== event.detail)));
      remember(panel);
    }
    $("phrase").focus();
  });
  $("panels").addEventListener("corrected", (event) => {
    remember(event.detail);
    say(`Corrected: ${event.detail.caption.text} Save it as JSON to keep it.`);
  });
  $("panels").addEventListener("say", (event) => say(event.detail));
  $("panels").addEventListener("problem", (event) => problem(event.detail));
}

function choose(file) {
  const clip = isClip(file);
  const most = clip ? state.limits.clip_bytes : state.limits.photo_bytes;
  if (file.size > most) {
    problem(new Refused(413, `${file.name} is larger than ${Math.floor(most / 2 ** 20)} MB, the most this server reads.`));
    return;
  }
  past.drop(state.visit);
  show(past.begin(file, URL.createObjectURL(file)));
  answer(state.panels);
}

/** Show the photo or clip of a visit, old or new, without its answer. */
function show(visit) {
  const clip = isClip(visit.file);
  Object.assign(state, { visit, file: visit.file, address: visit.address, phrases: [...visit.asked] });
  for (const panel of state.panels) panel.showMedia(visit.file, visit.address);
  $("others").hidden = clip;
  $("others").open = false;
  $("heat").closest("label").hidden = clip;
  $("every").closest("label").hidden = !clip;
  $("find-label").textContent = `Find a phrase in the ${clip ? "clip" : "picture"}`;
}

/** Show what was answered before; only a model that was not asked then is asked now. */
function showAgain(visit) {
  state.asked?.abort();
  state.asked = new AbortController();
  problem(null);
  past.drop(state.visit === visit ? null : state.visit);
  show(visit);
  $("work").hidden = false;
  $("work").scrollIntoView({ block: "start" });
  past.mark(visit);
  const missing = [];
  for (const panel of state.panels) {
    const known = visit.answers.get(panel.choice);
    if (!known) {
      missing.push(panel);
      continue;
    }
    panel.showAnswer(known.look ? { ...known.look, caption: known.captions[0] } : [...known.captions]);
    panel.showPhrases([...known.found]);
    panel.wait(false);
  }
  say(state.panels[0].captions.map((caption) => caption.text).join(" "));
  if (missing.length) answer(missing);
}

/** Keep what a panel shows in the history of this visit. */
function remember(panel) {
  if (!state.visit || panel.file !== state.visit.file || !panel.captions.length) return;
  state.visit.asked = [...state.phrases];
  const answered = { look: panel.look, captions: [...panel.captions], found: [...panel.found] };
  past.keep(state.visit, panel.choice, answered, panel.media).then(() => past.mark(state.visit));
}

/** Ask for the answers of some panels. A newer question makes older ones void. */
async function answer(panels) {
  if (!state.file) return;
  if (panels.length === state.panels.length) {
    state.asked?.abort();
    state.asked = new AbortController();
  }
  const { signal } = state.asked;
  const file = state.file;
  problem(null);
  $("work").hidden = false;
  bringIntoSight();
  say(isClip(file) ? "Watching the clip." : "Looking at the photo.");
  const asked = panels.map(async (panel) => {
    panel.wait(true);
    try {
      const reply = await question(panel.choice, file, signal);
      if (signal.aborted) return;
      panel.showAnswer(reply);
      remember(panel);
      if (state.phrases.length) await find([panel], []);
    } finally {
      if (!signal.aborted) panel.wait(false);
    }
  });
  try {
    await Promise.all(asked);
    say(panels.map((panel) => panel.captions.map((caption) => caption.text).join(" ")).join(" The other says: "));
    if ($("others").open) alternatives();
  } catch (error) {
    if (signal.aborted) return;
    problem(error);
    if (state.panels.every((panel) => !panel.captions.length)) {
      $("work").hidden = true;
      past.drop(state.visit);
      state.visit = null;
    }
  }
}

/** Scroll to the answer where it would begin in the lower half of the window or below: on a phone, below photos found. */
function bringIntoSight() {
  const { top } = $("work").getBoundingClientRect();
  if (top > innerHeight / 2) $("work").scrollIntoView({ block: "start" });
}

async function question(choice, file, signal) {
  const clip = isClip(file);
  const check = $("check").checked && choice.checks;
  const fields = {
    [clip ? "clip" : "image"]: file, model: choice.model, method: choice.method,
    check, threshold: check ? threshold() : null, every: clip && $("every").value ? Number($("every").value) : null,
  };
  return (await ask(clip ? "v1/video" : "v1/look", { fields, signal })).json();
}

/** The probability below which things are doubted, or null where that is left to the model. */
function threshold() {
  const percent = $("threshold").value.trim();
  return percent === "" ? null : Math.min(100, Math.max(0, Number(percent))) / 100;
}

/** Find all phrases again in panels whose answer is new, or only the wanted ones. */
async function find(panels, wanted) {
  const file = state.file;
  problem(null);
  try {
    await Promise.all(panels.map(async (panel) => {
      const texts = wanted.length ? wanted : state.phrases;
      const fields = { phrase: texts, model: panel.choice.model, threshold: threshold() };
      if (panel.isClip) Object.assign(fields, { clip: file, segments: JSON.stringify(panel.captions.map(({ segment }) => segment)) });
      else fields.image = file;
      const path = panel.isClip ? "v1/video/phrases" : "v1/ground";
      const reply = await (await ask(path, { fields, signal: state.asked?.signal })).json();
      if (file !== state.file) return;
      const parts = panel.isClip ? reply : [reply];
      const before = (at) => (panel.found[at] ?? []).filter(({ text }) => !texts.includes(text));
      panel.showPhrases(parts.map(({ phrases }, at) => [...before(at), ...phrases]));
      remember(panel);
    }));
    if (file !== state.file) return;
    const where = panels[0].isClip ? "this part of the clip" : "the picture";
    const told = panels[0].phrases.filter((phrase) => wanted.includes(phrase.text))
      .map((phrase) => `${phrase.text}: ${phrase.found
        ? `found, ${percent(phrase.score)} sure of the box` : `probably not in ${where}`}`);
    if (told.length) say(told.join(", "));
    const last = panels[0].phrases.findLastIndex((phrase) => phrase.found && wanted.includes(phrase.text));
    if (last >= 0) panels.forEach((panel) => panel.lights.show(`phrase ${last}`));
  } catch (error) {
    if (error.name === "AbortError") return;
    state.phrases = state.phrases.filter((phrase) => !wanted.includes(phrase));
    problem(error);
  }
}

async function alternatives() {
  const list = $("alternatives");
  if (!$("others").open || !state.file) return;
  const file = state.file;
  const { choice } = state.panels[0];
  list.replaceChildren();
  try {
    const fields = { image: file, model: choice.model }; // as wide a search as that of the sentence shown
    const captions = await (await ask("v1/alternatives", { fields, signal: state.asked?.signal })).json();
    if (file !== state.file) return;
    list.replaceChildren(...captions.map((caption) => {
      const item = document.createElement("li");
      const text = document.createTextNode(`${caption.text} `);
      const score = document.createElement("span");
      score.textContent = percent(Math.exp(caption.score));
      item.append(text, score);
      return item;
    }));
  } catch (error) {
    if (error.name !== "AbortError") problem(error);
  }
}

function compare() {
  const two = $("compare").checked;
  if (two && state.panels.length === 1) {
    const first = Number(state.panels[0].parts.select.value);
    const panel = addPanel(state.choices.length > 1 ? (first + 1) % state.choices.length : first);
    state.panels.push(panel);
    panel.showHeat($("heat").checked);
    if (state.file) {
      panel.showMedia(state.file, state.address);
      answer([panel]);
    }
  } else if (!two && state.panels.length === 2) {
    state.panels.pop().root.remove();
  }
  showChoices();
}

function showChoices() {
  $("panels").classList.toggle("two", state.panels.length === 2);
  for (const panel of state.panels) panel.parts.which.hidden = state.choices.length < 2;
  // beside the sentence; of two sentences it is about both
  if (state.panels.length === 1) state.panels[0].parts.ask.append($("find"));
  else $("panels").before($("find"));
}

function problem(error) {
  $("problem").hidden = error === null;
  if (error === null) return;
  const again = error.retryAfter ? ` Try again in ${error.retryAfter} s.` : "";
  $("problem").textContent = (error.message || "Something went wrong.") + again;
  say("");
}

function say(text) {
  $("status").textContent = text;
}

start();
