// The size at which a photo is looked at, and the resize of Pillow (bilinear, 8 bits, after a whole-number reduction),
// so that the networks see here what they see in Python. Pixels are { width, height, data }, three bytes each.

const STEP = 32;
const BUDGET = 126_000;
const ENLARGED = 1.3;
const [SMALLEST, LARGEST] = [96, 1024];
const GAP = 3;
const BITS = 22;

/** Width and height of the network's input; see deixis/regions/network/resize.py. */
export function inputSize(width, height) {
  const scale = Math.sqrt(Math.min(BUDGET, ENLARGED * width * height) / (width * height));
  return [width, height].map((side) => roundEven(Math.min(Math.max(side * scale, SMALLEST), LARGEST) / STEP) * STEP);
}

/** Resize a photo to its input size. */
export function fit(photo) {
  const [width, height] = inputSize(photo.width, photo.height);
  if (width === photo.width && height === photo.height) return photo;
  const across = Math.max(1, Math.trunc(photo.width / width / GAP));
  const down = Math.max(1, Math.trunc(photo.height / height / GAP));
  const small = across > 1 || down > 1 ? reduce(photo, across, down) : photo;
  return resample(small, width, height, photo.width / across, photo.height / down);
}

/** Python's round: halves go to the even number. */
function roundEven(value) {
  const low = Math.floor(value);
  return value - low === 0.5 ? low + (low % 2) : Math.round(value);
}

/** The mean of each block of so many pixels across and down; blocks at the right and bottom may be smaller. */
function reduce({ width, height, data }, across, down) {
  const [columns, rows] = [Math.ceil(width / across), Math.ceil(height / down)];
  const out = new Uint8Array(columns * rows * 3);
  for (let row = 0; row < rows; row += 1) {
    const [top, bottom] = [row * down, Math.min(height, (row + 1) * down)];
    for (let column = 0; column < columns; column += 1) {
      const [left, right] = [column * across, Math.min(width, (column + 1) * across)];
      const count = (bottom - top) * (right - left);
      const share = Math.floor(Math.fround(2 ** 24 / count));
      for (let channel = 0; channel < 3; channel += 1) {
        let sum = count >> 1;
        for (let y = top; y < bottom; y += 1) {
          for (let x = left; x < right; x += 1) sum += data[(y * width + x) * 3 + channel];
        }
        out[(row * columns + column) * 3 + channel] = Math.floor((sum * share) / 2 ** 24);
      }
    }
  }
  return { width: columns, height: rows, data: out };
}

/** For each pixel of a side: the first that counts, and the weights from there on, as whole numbers of 2^-22. */
function weightsOf(from, to, extent) {
  const scale = extent / to;
  const reach = Math.max(scale, 1);
  return Array.from({ length: to }, (_, at) => {
    const centre = (at + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - reach + 0.5));
    const last = Math.min(from, Math.trunc(centre + reach + 0.5));
    const raw = Array.from({ length: last - first }, (__, k) => Math.max(0, 1 - Math.abs((k + first - centre + 0.5) * (1 / reach))));
    const share = 1 / raw.reduce((sum, weight) => sum + weight, 0); // Pillow multiplies by it: a quotient rounds otherwise
    return { first, weights: Int32Array.from(raw, (weight) => Math.trunc(0.5 + weight * share * 2 ** BITS)) };
  });
}

/** Columns and rows, each rounded to bytes; as in Pillow 13, rows come first if their number falls by over twice as much. */
function resample(photo, width, height, wide, high) {
  const { width: columns, height: rows } = photo;
  const across = (now) => (width !== columns || wide !== columns ? columnsOf(now, weightsOf(columns, width, wide)) : now);
  const down = (now) => (height !== rows || high !== rows ? rowsOf(now, weightsOf(rows, height, high)) : now);
  const rowsFirst = rows > height && rows - height > 2 * (columns - width);
  return rowsFirst ? across(down(photo)) : down(across(photo));
}

const toByte = (sum) => Math.min(255, Math.max(0, sum >> BITS));

function columnsOf({ width, height, data }, kernels) {
  const out = new Uint8Array(kernels.length * height * 3);
  for (let y = 0; y < height; y += 1) {
    kernels.forEach(({ first, weights }, x) => {
      for (let channel = 0; channel < 3; channel += 1) {
        let sum = 1 << (BITS - 1);
        for (let k = 0; k < weights.length; k += 1) sum += data[(y * width + first + k) * 3 + channel] * weights[k];
        out[(y * kernels.length + x) * 3 + channel] = toByte(sum);
      }
    });
  }
  return { width: kernels.length, height, data: out };
}

function rowsOf({ width, data }, kernels) {
  const out = new Uint8Array(width * kernels.length * 3);
  const line = width * 3;
  kernels.forEach(({ first, weights }, y) => {
    for (let at = 0; at < line; at += 1) {
      let sum = 1 << (BITS - 1);
      for (let k = 0; k < weights.length; k += 1) sum += data[(first + k) * line + at] * weights[k];
      out[y * line + at] = toByte(sum);
    }
  });
  return { width, height: kernels.length, data: out };
}
