// What was looked at in this visit: in memory alone, the newest first. A click shows photo and answer again.

const MOST = 12;
const SIDE = 144; // pixels of a thumbnail's longer side: twice what is shown
const list = document.getElementById("history");

export class History {
  /** `show` is given the visit that is clicked. */
  constructor(show) {
    this.show = show;
    this.visits = [];
  }

  /** Begin a visit: its file, the address of its bytes in this browser, and what will be answered. */
  begin(file, address) {
    const visit = { file, address, answers: new Map(), asked: [], item: null };
    this.visits.unshift(visit);
    for (const old of this.visits.splice(MOST)) this.#forget(old);
    return visit;
  }

  /** Keep what a model and method answered; the first answer puts the visit on the list. */
  async keep(visit, choice, answer, media) {
    if (!this.visits.includes(visit)) return;
    visit.answers.set(choice, { ...visit.answers.get(choice), ...answer });
    if (visit.item) {
      this.#name(visit);
      return;
    }
    visit.item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", () => this.show(visit));
    visit.item.append(button);
    button.append(await thumbnail(media));
    if (!this.visits.includes(visit)) return;
    this.#name(visit);
    list.prepend(visit.item);
    list.closest("section").hidden = false;
  }

  /** Take back a visit that was never answered, such as one with a broken file. */
  drop(visit) {
    if (!visit || visit.answers.size) return;
    this.visits = this.visits.filter((other) => other !== visit);
    this.#forget(visit);
  }

  mark(visit) {
    for (const { item } of this.visits) item?.firstChild.removeAttribute("aria-current");
    visit.item?.firstChild.setAttribute("aria-current", "true");
  }

  #name({ item, file, answers }) {
    const [first] = answers.values();
    const label = `${file.name}: ${first.captions.map(({ text }) => text).join(" ")}`;
    item.firstChild.setAttribute("aria-label", label);
    item.firstChild.title = label;
  }

  #forget(visit) {
    visit.item?.remove();
    URL.revokeObjectURL(visit.address);
  }
}

/** A small picture of a photo or of a clip's first frame; a mark where this browser cannot show it (TIFF). */
async function thumbnail(media) {
  const clip = media instanceof HTMLVideoElement;
  try {
    await (clip ? firstFrame(media) : media.decode());
    const [width, height] = clip ? [media.videoWidth, media.videoHeight] : [media.naturalWidth, media.naturalHeight];
    const canvas = document.createElement("canvas");
    const scale = Math.min(1, SIDE / Math.max(width, height));
    canvas.width = Math.max(1, Math.round(width * scale));
    canvas.height = Math.max(1, Math.round(height * scale));
    canvas.getContext("2d").drawImage(media, 0, 0, canvas.width, canvas.height);
    return canvas;
  } catch {
    const mark = document.createElement("span");
    mark.textContent = clip ? "clip" : "photo";
    return mark;
  }
}

function firstFrame(video) {
  if (video.readyState >= 2) return Promise.resolve();
  return new Promise((resolve, reject) => {
    if (video.error) reject(video.error);
    video.addEventListener("loadeddata", resolve, { once: true });
    video.addEventListener("error", reject, { once: true });
  });
}
