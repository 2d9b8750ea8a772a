// The page: a photo in, its sentence with words that point, and phrases to look for. The worker answers.
import { Overlay, describe, lightTogether, percent, place, placeLine, sentence } from "./look.js";

const $ = (id) => document.getElementById(id);
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
const overlay = new Overlay($("boxes"));
let asked = 0;
let photo = 0;
let caption = null;
let phrases = [];

worker.addEventListener("message", ({ data }) => {
  if (data.ready) document.documentElement.dataset.ready = "";
  if (data.loaded !== undefined) $("loading").value = data.loaded;
  if (data.loaded !== undefined) $("loading").parentElement.hidden = data.loaded >= 1;
  if (data.id === 0) problem(data.problem);
  const wait = waiting.get(data.id);
  waiting.delete(data.id);
  if (wait) data.problem === undefined ? wait.resolve(data.answer) : wait.reject(new Error(data.problem));
});
worker.addEventListener("error", (event) => problem(event.message || "The model could not be started: open this page over http, not as a file."));

function ask(question) {
  asked += 1;
  const id = asked;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, ...question });
  });
}

function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}

const lights = lightTogether($("panel"), () => [overlay], (key) => {
  overlay.light(key);
  for (const one of $("panel").querySelectorAll("[data-key]")) one.classList.toggle("lit", one.dataset.key === key);
});

async function open(file) {
  photo += 1;
  const own = photo;
  problem("");
  lights.forget();
  caption = null;
  phrases = [];
  URL.revokeObjectURL($("photo").src);
  $("photo").src = URL.createObjectURL(file);
  $("photo").alt = file.name || "The photo";
  $("work").hidden = false;
  $("panel").setAttribute("aria-busy", "true");
  show();
  try {
    const answer = await ask({ kind: "photo", file });
    if (own !== photo) return; // another photo came meanwhile
    caption = answer;
    $("status").textContent = answer.text;
  } catch (error) {
    if (own !== photo) return;
    $("work").hidden = true;
    problem(error.message);
  }
  $("panel").setAttribute("aria-busy", "false");
  show();
}

async function find(text) {
  const own = photo;
  const wanted = text.split(",").map((one) => one.trim()).filter(Boolean);
  if (!wanted.length || !caption) return;
  try {
    const found = await ask({ kind: "phrases", phrases: wanted });
    if (own !== photo) return;
    problem("");
    phrases = [...found, ...phrases.filter((old) => !wanted.includes(old.text))];
    $("phrase").value = "";
    $("status").textContent = found.map(({ text: name, found: there }) => `${name}: ${there ? "found" : "probably not there"}`).join("; ");
    show();
    if (found[0].found) lights.show("phrase 0"); // what is probably not there has no box to show
  } catch (error) {
    problem(error.message);
  }
}

/** Draw everything anew from the caption and the phrases. */
function show() {
  const size = caption?.size ?? [1, 1];
  const words = (caption?.words ?? []).flatMap((word, at) => word.boxes.length
    ? [{ key: `word ${at}`, text: word.text, boxes: word.boxes, presence: word.presence, doubted: !word.trusted, word }]
    : []);
  const found = phrases.map((phrase, at) => ({ key: `phrase ${at}`, text: phrase.text, boxes: phrase.boxes, sure: phrase.score, doubted: !phrase.found }));
  const marks = [...words, ...found].map((mark, number) => ({ ...mark, number }));
  const spans = (caption?.words ?? []).map((word, at) => [word.start, word.end, word.boxes.length ? `word ${at}` : null]);
  $("sentence").replaceChildren(...sentence(caption?.text ?? "", spans, new Map(marks.map((mark) => [mark.key, mark])), size));
  overlay.draw(marks, size);
  lines($("words"), marks.filter(({ key }) => key.startsWith("word")), (mark) => placeLine(mark, describe(mark, size)));
  lines($("found"), marks.filter(({ key }) => key.startsWith("phrase")), (mark) => phraseLine(mark, size));
}

function lines(list, marks, line) {
  list.parentElement.hidden = !marks.length;
  list.replaceChildren(...marks.map(line));
}

function phraseLine(mark, size) {
  if (!mark.doubted) return placeLine(mark, `${place(mark.boxes[0], size)}; ${percent(mark.sure)} sure of the box`);
  return placeLine(mark, "probably not in the picture"); // its score would be that of the box if it were there
}

$("file").addEventListener("change", () => {
  if ($("file").files[0]) open($("file").files[0]);
  $("file").value = "";
});
$("find").addEventListener("submit", (event) => {
  event.preventDefault();
  find($("phrase").value);
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const file = event.dataTransfer.files[0];
  if (file) open(file);
  else problem("What was dropped is no file. Save the photo first, then drop the file.");
});
addEventListener("paste", (event) => {
  const file = event.clipboardData.files[0];
  if (file) open(file);
});
