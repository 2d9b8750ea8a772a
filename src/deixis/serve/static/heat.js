// Where a word looked, as warm colours over the picture.

/** Draw a word's attention: every region lends its weight to the pixels it covers. */
export function drawHeat(canvas, regions, weights, [width, height]) {
  const scale = 160 / Math.max(width, height);
  const columns = Math.max(1, Math.round(width * scale));
  const rows = Math.max(1, Math.round(height * scale));
  const heat = new Float32Array(columns * rows);
  regions.forEach(([x1, y1, x2, y2], at) => {
    const weight = weights[at] || 0;
    if (weight <= 0) return;
    const right = Math.min(columns, Math.ceil(x2 * scale));
    const bottom = Math.min(rows, Math.ceil(y2 * scale));
    for (let y = Math.max(0, Math.floor(y1 * scale)); y < bottom; y += 1) {
      for (let x = Math.max(0, Math.floor(x1 * scale)); x < right; x += 1) heat[y * columns + x] += weight;
    }
  });
  let low = Infinity;
  let high = 0;
  for (const value of heat) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  heat.forEach((value, at) => {
    const share = high > low ? (value - low) / (high - low) : 0;
    // red over orange to yellow, and as good as transparent where the word does not look
    image.data[4 * at] = 200 + 55 * share;
    image.data[4 * at + 1] = 235 * share ** 1.5;
    image.data[4 * at + 2] = 40 * (1 - share);
    image.data[4 * at + 3] = 225 * share ** 1.2;
  });
  context.putImageData(image, 0, 0);
}
