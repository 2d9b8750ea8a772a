// Search in the server's folder of photos: a phrase in, a row of photos with boxes out.
import { Overlay, paint } from "../look/look.js";
import { ask } from "./api.js";

const $ = (id) => document.getElementById(id);
const addresses = [];
let asked = null;

/** Show the search where the server has a folder; `choose` takes a photo that is clicked, `problem` an error. */
export function startAlbum(photos, { choose, problem, say }) {
  if (!photos) return;
  $("album").hidden = false;
  $("album-count").textContent = `${photos.toLocaleString("en")} photos can be searched.`;
  $("album-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = $("album-query").value.trim();
    if (!query) return;
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    problem(null);
    try {
      const answer = await (await ask(`v1/search?${new URLSearchParams({ query })}`, { signal })).json();
      for (const address of addresses.splice(0)) URL.revokeObjectURL(address);
      const items = answer.found.map(({ answer: one }) => result(one, choose, problem));
      $("album-found").replaceChildren(...items.map(({ item }) => item));
      say(`${answer.found.length} photos for ${query}`);
      for (const { load } of items) await load(signal);
    } catch (error) {
      if (error.name !== "AbortError") problem(error);
    }
  });
}

function result(answer, choose, problem) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const stage = document.createElement("div");
  stage.className = "stage";
  const image = new Image();
  const found = answer.phrases.filter((phrase) => phrase.found).map((phrase) => phrase.text);
  image.alt = found.length ? `${answer.image}: ${found.join(", ")}` : answer.image;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("aria-hidden", "true");
  stage.append(image, svg);
  const name = document.createElement("span");
  name.textContent = answer.image.split("/").pop();
  const marks = answer.phrases.map((phrase, number) => ({
    key: `found ${number}`, text: phrase.text, boxes: phrase.boxes, frames: phrase.frames, doubted: !phrase.found, number,
  }));
  button.append(stage, legend(marks), name);
  button.addEventListener("click", async () => {
    try {
      const blob = await (await ask(`v1/photo?${new URLSearchParams({ image: answer.image, side: 1600 })}`)).blob();
      choose(new File([blob], name.textContent, { type: "image/jpeg" }));
      $("work").scrollIntoView({ block: "start" });
    } catch (error) {
      problem(error);
    }
  });
  item.append(button);
  const load = async (signal) => {
    const fetched = await ask(`v1/photo?${new URLSearchParams({ image: answer.image })}`, { signal });
    const address = URL.createObjectURL(await fetched.blob());
    addresses.push(address);
    image.src = address;
    await image.decode().catch(() => {}); // boxes lie on a photo that is there
    if (signal.aborted) return;
    new Overlay(svg).draw(marks, answer.size);
  };
  return { item, load };
}

/** The phrases below a photo in the colours of their boxes; one that is probably not there is struck out. */
function legend(marks) {
  const line = document.createElement("span");
  line.className = "legend";
  line.append(...marks.map((mark) => {
    const part = document.createElement(mark.doubted ? "s" : "b");
    part.textContent = mark.text;
    if (mark.doubted) part.title = "probably not in this photo";
    else paint(part, mark);
    return part;
  }));
  return line;
}
