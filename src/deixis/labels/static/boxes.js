// The boxes of one photo while they are corrected, and the file that is made of all of them.

const SMALLEST = 2; // pixels: less is a slip of the hand

export class Boxes {
  constructor(photo) {
    Object.assign(this, { image: photo.image, size: photo.size, absent: photo.absent });
    this.boxes = photo.boxes;
    this.reviewed = photo.reviewed;
    this.edited = false;
    this.history = [];
  }

  get state() {
    return { boxes: this.boxes, reviewed: this.reviewed, edited: this.edited };
  }

  set state({ boxes, reviewed, edited }) {
    Object.assign(this, { boxes, reviewed, edited });
  }

  keepForUndo() {
    this.history.push(structuredClone(this.state));
    this.edited = true;
  }

  undo() {
    const before = this.history.pop();
    if (before) this.state = before;
    return Boolean(before);
  }

  /** The numbers of boxes, large ones first, so that small ones lie on top. */
  byArea() {
    const area = ({ box: [x1, y1, x2, y2] }) => (x2 - x1) * (y2 - y1);
    return this.boxes.map((_, number) => number).sort((a, b) => area(this.boxes[b]) - area(this.boxes[a]));
  }

  /** The box at a point: the preferred one if it is there, else the smallest; -1 for none. */
  under([x, y], preferred) {
    const holds = (number) => {
      const [x1, y1, x2, y2] = this.boxes[number].box;
      return x >= x1 && x <= x2 && y >= y1 && y <= y2;
    };
    if (preferred >= 0 && holds(preferred)) return preferred;
    return this.byArea().findLast(holds) ?? -1;
  }

  add(box, label) {
    this.boxes.push({ label, box, mentions: [] });
    return this.boxes.length - 1;
  }

  remove(number) {
    this.boxes.splice(number, 1);
  }

  keep(number) {
    delete this.boxes[number].doubted;
  }

  /** Give a box another label; the words of a caption that named it speak of something else then. */
  rename(number, text) {
    const label = text.trim().replace(/\s+/g, " ");
    const box = this.boxes[number];
    if (label === box.label) return;
    Object.assign(box, { label, mentions: [] });
    delete box.doubted;
  }

  /** Put a box somewhere; a side drawn past its opposite changes places with it. */
  place(number, [x1, y1, x2, y2]) {
    const [width, height] = this.size;
    const within = (value, most) => Math.min(Math.max(value, 0), most);
    this.boxes[number].box = [
      within(Math.min(x1, x2), width), within(Math.min(y1, y2), height),
      within(Math.max(x1, x2), width), within(Math.max(y1, y2), height),
    ];
    delete this.boxes[number].doubted; // who moves a box believes in it
  }

  /** Move a box as a whole: it stops at the border. */
  move(number, [x1, y1, x2, y2], dx, dy) {
    const [width, height] = this.size;
    const across = Math.min(Math.max(dx, -x1), width - x2);
    const down = Math.min(Math.max(dy, -y1), height - y2);
    this.place(number, [x1 + across, y1 + down, x2 + across, y2 + down]);
  }

  /** Give a box at least a pixel or two. */
  settle(number) {
    const [x1, y1, x2, y2] = this.boxes[number].box;
    const [width, height] = this.size;
    const left = Math.min(x1, width - SMALLEST);
    const top = Math.min(y1, height - SMALLEST);
    this.boxes[number].box = [left, top, Math.max(x2, left + SMALLEST), Math.max(y2, top + SMALLEST)]
      .map((side) => Math.round(side * 100) / 100);
  }

  /** The photo is right as it is now: what was doubted and not kept, or has no label, is not there. */
  finish() {
    this.boxes = this.boxes.filter(({ doubted, label }) => !doubted && label);
    this.reviewed = true;
  }
}

/** All photos as COCO instances; a box that captions name is written once for each of them. */
export function corrected(photos) {
  const labels = [...new Set(photos.flatMap(({ boxes }) => boxes.map(({ label }) => label)))].filter(Boolean).sort();
  const annotations = [];
  photos.forEach(({ boxes }, photo) => {
    for (const { label, box: [x1, y1, x2, y2], mentions, doubted, score } of boxes) {
      if (!label) continue;
      for (const mention of mentions.length ? mentions : [{ phrase: label }]) {
        annotations.push({
          id: annotations.length + 1, image_id: photo + 1, category_id: labels.indexOf(label) + 1,
          bbox: [x1, y1, x2 - x1, y2 - y1], area: (x2 - x1) * (y2 - y1), iscrowd: 0, trusted: !doubted,
          ...(score === undefined ? {} : { score }), ...mention,
        });
      }
    }
  });
  return {
    info: { description: "Boxes drafted by Deixis and corrected by a person", version: "1.0" },
    images: photos.map(({ image, size, reviewed }, photo) => (
      { id: photo + 1, file_name: image, width: size[0], height: size[1], reviewed })),
    categories: labels.map((name, at) => ({ id: at + 1, name })),
    annotations,
  };
}
