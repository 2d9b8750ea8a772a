// Answers beside the page, so that it stays alive meanwhile. It is asked { id, kind, ... } and says { id, answer } or
// { id, problem }; while the model loads it says { loaded }.
import { Model } from "./model.js";

const MOST_PIXELS = 80_000_000;
const loading = Model.load(new URL("./", import.meta.url), (loaded) => postMessage({ loaded }));
loading.then(() => postMessage({ loaded: 1, ready: true }), (error) => postMessage({ id: 0, problem: error.message }));
let seen = null;

const answers = {
  async photo({ file }) {
    seen = null;
    const model = await loading;
    seen = await model.look(await pixelsOf(file));
    return model.caption(seen);
  },
  async phrases({ phrases }) {
    if (!seen) throw new Error("There is no photo yet to look into.");
    return (await loading).ground(seen, phrases);
  },
};

let before = Promise.resolve(); // one after the other: a session runs once at a time
addEventListener("message", ({ data }) => {
  before = before.then(async () => {
    try {
      postMessage({ id: data.id, answer: await answers[data.kind](data) });
    } catch (error) {
      postMessage({ id: data.id, problem: error.message });
    }
  });
});

/** Upright pixels of a photo without alpha, on white; its colours as they stand in the file, as Python reads them. */
async function pixelsOf(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image", colorSpaceConversion: "none" });
  } catch {
    throw new Error(`${file.name || "This file"} is not a photo that this browser can read.`);
  }
  const { width, height } = bitmap;
  if (width * height > MOST_PIXELS) throw new Error(`${file.name} has ${width} × ${height} pixels; at most ${MOST_PIXELS} are read.`);
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const coloured = context.getImageData(0, 0, width, height).data;
  const data = new Uint8Array(width * height * 3);
  for (let at = 0, to = 0; to < data.length; at += 4, to += 3) {
    data[to] = coloured[at];
    data[to + 1] = coloured[at + 1];
    data[to + 2] = coloured[at + 2];
  }
  return { width, height, data };
}
