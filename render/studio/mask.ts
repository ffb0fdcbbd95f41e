// The mask of a filled shape: one channel of coverage in linear memory, for WebAssembly (AssemblyScript). mask.js calls it.
//
// Polygons. An edge leaves signed areas: in each row that it crosses, the part of its height that lies right of it in the
// pixel it meets, and the rest in the next pixel. The running sum along a row is the winding number averaged over each
// pixel; min(1, |sum|) is its coverage by the nonzero rule. An outline is a polygon too: its left side one way, its right
// side the other.
//
// Levels. p5.brush was made for a canvas on a GPU: four samples a pixel, 8 bits a sample, each painting rounded. A pixel
// here is the mean of its samples, 0..255, as a float: painting over it with alpha a moves the covered share of it by
// round(a (255 - level)), erasing by round-offs likewise. When the samples differ, their mean is rounded up, as the GPU's
// resolve does. Leaves out: gradients, images, text, dashes, caps, anything but one polygon or discs at a time.

// Planes of f32, `pitch` from row to row.
let width: i32 = 0;
let height: i32 = 0;
let pitch: i32 = 0;
let levels: usize = 0;
let areas: usize = 0; // signed areas of a polygon; zero between paintings, like the next two
let outlines: usize = 0;
let discs: usize = 0;
// Two i32 a row: first and last pixel that polygon or outline touches.
let spans: usize = 0;
let firstRow: i32 = 0;
let lastRow: i32 = -1;
// The rectangle outside which every level is 0.
let left: i32 = 0;
let right: i32 = 0;
let top: i32 = 0;
let bottom: i32 = 0;
// table[n][level]: a level after n erasures of `tableStrength`; `tableRows` of them are filled in.
let table: usize = 0;
let tableStrength: f32 = -1;
let tableRows: i32 = 0;
const MOST_ERASURES: i32 = 255;
let bytes: usize = 0; // RGBA, handed over
let points: usize = 0; // x, y of a polygon in device pixels, last in memory, so that it can grow

const NEAREST: f32 = 0.5; // pixels between two points of an outline; closer ones change nothing that is seen
const MITER: f32 = 10; // the 2D canvas's miterLimit

function ensure(end: usize): void {
  const pages = <i32>((end + 65535) >> 16) - memory.size();
  if (pages > 0 && memory.grow(pages) < 0) unreachable();
}

export function start(w: i32, h: i32): void {
  width = w;
  height = h;
  pitch = ((w + 3) & ~3) + 8;
  const plane = <usize>(pitch * h) << 2;
  levels = 1024;
  areas = levels + plane;
  outlines = areas + plane;
  discs = outlines + plane;
  spans = discs + plane;
  table = spans + (<usize>h << 3);
  bytes = table + (<usize>(MOST_ERASURES + 1) << 8) + 16;
  points = bytes + (<usize>(w * h) << 2);
  ensure(points + (<usize>4096 << 3));
  for (let y = 0; y < h; y++) resetSpan(y);
  left = width;
  top = firstRow = height;
}

export function pointsAt(): usize {
  return points;
}

export function bytesAt(): usize {
  return bytes;
}

// Room for `count` points; mask.js takes new views afterwards.
export function reserve(count: i32): void {
  ensure(points + (<usize>count << 3));
}

@inline function resetSpan(y: i32): void {
  store<i32>(spans + (<usize>y << 3), pitch);
  store<i32>(spans + (<usize>y << 3), -1, 4);
}

@inline function add(plane: usize, row: usize, column: i32, value: f32): void {
  const at = plane + row + (<usize>column << 2);
  store<f32>(at, load<f32>(at) + value);
}

@inline function edge(plane: usize, x0: f32, y0: f32, x1: f32, y1: f32): void {
  if (y0 == y1) return;
  let sign: f32 = 1;
  if (y0 > y1) {
    sign = -1;
    let swap = x0;
    x0 = x1;
    x1 = swap;
    swap = y0;
    y0 = y1;
    y1 = swap;
  }
  const end = <f32>height;
  if (y1 <= 0 || y0 >= end) return;
  const slope = (x1 - x0) / (y1 - y0);
  if (y0 < 0) {
    x0 -= slope * y0;
    y0 = 0;
  }
  y1 = min(y1, end);
  const first = <i32>y0;
  const last = min(<i32>y1, height - 1);
  if (first < firstRow) firstRow = first;
  if (last > lastRow) lastRow = last;
  const wide = <f32>width;
  let x = x0;
  for (let y = first; y <= last; y++) {
    const dy = min<f32>(<f32>(y + 1), y1) - max<f32>(<f32>y, y0);
    if (dy <= 0) break;
    const next = x + slope * dy;
    const rise = dy * sign;
    const a = max<f32>(0, min<f32>(min(x, next), wide));
    const b = max<f32>(0, min<f32>(max(x, next), wide));
    x = next;
    const row = <usize>(y * pitch) << 2;
    const ai = <i32>a;
    const bi = <i32>b;
    const span = spans + (<usize>y << 3);
    if (ai < load<i32>(span)) store<i32>(span, ai);
    if (bi + 1 > load<i32>(span, 4)) store<i32>(span, bi + 1, 4);
    if (ai == bi) {
      const over = rise * (0.5 * (a + b) - <f32>ai);
      add(plane, row, ai, rise - over);
      add(plane, row, ai + 1, over);
    } else {
      const perPixel = rise / (b - a);
      const inFirst = <f32>(ai + 1) - a;
      let area = perPixel * inFirst * inFirst * 0.5;
      add(plane, row, ai, area);
      let carried = perPixel * inFirst - area;
      for (let column = ai + 1; column < bi; column++) {
        add(plane, row, column, carried + perPixel * 0.5);
        carried = perPixel * 0.5;
      }
      const inLast = b - <f32>bi;
      area = perPixel * inLast * inLast * 0.5;
      add(plane, row, bi, carried + perPixel * inLast - area);
      add(plane, row, bi + 1, area);
    }
  }
}

// Gather the inside of the polygon of `count` points.
export function fill(count: i32): void {
  if (count < 3) return;
  const end = points + (<usize>(count - 1) << 3);
  let x = load<f32>(end);
  let y = load<f32>(end, 4);
  for (let at = points; at <= end; at += 8) {
    const nextX = load<f32>(at);
    const nextY = load<f32>(at, 4);
    edge(areas, x, y, nextX, nextY);
    x = nextX;
    y = nextY;
  }
}

// Leave out points that are near the one before; the number of those that stay.
function thin(count: i32): i32 {
  let kept = 1;
  let x = load<f32>(points);
  let y = load<f32>(points, 4);
  for (let i = 1; i < count; i++) {
    const at = points + (<usize>i << 3);
    const dx = load<f32>(at) - x;
    const dy = load<f32>(at, 4) - y;
    if (dx * dx + dy * dy < NEAREST * NEAREST) continue;
    x += dx;
    y += dy;
    const to = points + (<usize>kept << 3);
    store<f32>(to, x);
    store<f32>(to, y, 4);
    kept++;
  }
  return kept;
}

// Gather the outline of the closed polygon, 2 * half wide before the linear map (a c / b d) that the points have been
// through. Joins are miters; where an edge is too short for that they are cut, so that a fold leaves no spike.
// The points are used up.
export function outline(count: i32, half: f32, a: f32, b: f32, c: f32, d: f32): void {
  const determinant = a * d - b * c;
  if (determinant == 0) return;
  const ia = d / determinant;
  const ib = -b / determinant;
  const ic = -c / determinant;
  const id = a / determinant;
  const kept = thin(count);
  if (kept < 2) return;
  const end = points + (<usize>(kept - 1) << 3);
  let x = load<f32>(points);
  let y = load<f32>(points, 4);
  let ex = x - load<f32>(end);
  let ey = y - load<f32>(end, 4);
  // Unit normal of the edge that comes in, before the map.
  let ux = ia * ex + ic * ey;
  let uy = ib * ex + id * ey;
  let before: f32 = sqrt<f32>(ux * ux + uy * uy);
  let nx: f32 = 0;
  let ny: f32 = 1;
  if (before > 0) {
    nx = -uy / before;
    ny = ux / before;
  }
  let lastLeftX: f32 = 0, lastLeftY: f32 = 0, lastRightX: f32 = 0, lastRightY: f32 = 0;
  let firstLeftX: f32 = 0, firstLeftY: f32 = 0, firstRightX: f32 = 0, firstRightY: f32 = 0;
  for (let i = 0; i < kept; i++) {
    const at = points + (<usize>(i + 1 == kept ? 0 : i + 1) << 3);
    const nextX = load<f32>(at);
    const nextY = load<f32>(at, 4);
    ex = nextX - x;
    ey = nextY - y;
    ux = ia * ex + ic * ey;
    uy = ib * ex + id * ey;
    const length: f32 = sqrt<f32>(ux * ux + uy * uy);
    let mx = nx;
    let my = ny;
    if (length > 0) {
      mx = -uy / length;
      my = ux / length;
    }
    // The miter is sum / bend, and its length 1 / cos(half the turn), whose square is 2 / bend.
    const sumX = nx + mx;
    const sumY = ny + my;
    const bend = max<f32>(1 + nx * mx + ny * my, 0.0001);
    const flat: f32 = 1 / sqrt<f32>(2 * bend);
    const outside: f32 = bend * MITER * MITER < 2 ? flat : 1 / bend;
    // Inside, the sides meet before the shorter edge ends; or they do not, and then the join goes as far as the edge itself.
    const shorter = min(before, length);
    const inside: f32 = half * half * (2 - bend) > shorter * shorter * bend ? flat : 1 / bend;
    const turnsLeft = nx * my - ny * mx > 0;
    const leftBy: f32 = (turnsLeft ? inside : outside) * half;
    const rightBy: f32 = (turnsLeft ? outside : inside) * half;
    const dx = a * sumX + c * sumY;
    const dy = b * sumX + d * sumY;
    const leftX = x + dx * leftBy;
    const leftY = y + dy * leftBy;
    const rightX = x - dx * rightBy;
    const rightY = y - dy * rightBy;
    if (i == 0) {
      firstLeftX = leftX;
      firstLeftY = leftY;
      firstRightX = rightX;
      firstRightY = rightY;
    } else {
      edge(outlines, lastLeftX, lastLeftY, leftX, leftY);
      edge(outlines, rightX, rightY, lastRightX, lastRightY);
    }
    lastLeftX = leftX;
    lastLeftY = leftY;
    lastRightX = rightX;
    lastRightY = rightY;
    nx = mx;
    ny = my;
    before = length;
    x = nextX;
    y = nextY;
  }
  edge(outlines, lastLeftX, lastLeftY, firstLeftX, firstLeftY);
  edge(outlines, firstRightX, firstRightY, lastRightX, lastRightY);
}

@inline function coverage(sums: v128): v128 {
  return f32x4.min(f32x4.abs(sums), f32x4.splat(1));
}

@inline function runningSum(values: v128): v128 {
  const zero = f32x4.splat(0);
  values = f32x4.add(values, v128.shuffle<f32>(zero, values, 0, 4, 5, 6));
  return f32x4.add(values, v128.shuffle<f32>(zero, values, 0, 1, 4, 5));
}

@inline function over(level: v128, alpha: v128, sums: v128): v128 {
  const step = f32x4.nearest(f32x4.mul(alpha, f32x4.sub(f32x4.splat(255), level)));
  return f32x4.add(level, f32x4.mul(coverage(sums), step));
}

// Paint what `fill` and then what `outline` gathered, with these alphas.
export function paint(fillAlpha: f32, outlineAlpha: f32): void {
  const zero = f32x4.splat(0);
  const alpha = f32x4.splat(fillAlpha);
  const outlined = f32x4.splat(outlineAlpha);
  top = min(top, firstRow);
  bottom = max(bottom, lastRow + 1);
  for (let y = firstRow; y <= lastRow; y++) {
    const span = spans + (<usize>y << 3);
    const from = load<i32>(span) & ~3;
    const to = load<i32>(span, 4);
    resetSpan(y);
    left = min(left, from);
    right = max(right, min(to, width));
    const row = <usize>(y * pitch) << 2;
    let sum = zero;
    let outlineSum = zero;
    for (let x = from; x <= to; x += 4) {
      const at = row + (<usize>x << 2);
      let level = v128.load(levels + at);
      const gathered = v128.load(areas + at);
      if (v128.any_true(gathered)) {
        sum = f32x4.add(runningSum(gathered), sum);
        v128.store(areas + at, zero);
      }
      level = over(level, alpha, sum);
      sum = v128.shuffle<f32>(sum, sum, 3, 3, 3, 3);
      if (outlineAlpha > 0) {
        const edges = v128.load(outlines + at);
        if (v128.any_true(edges)) {
          outlineSum = f32x4.add(runningSum(edges), outlineSum);
          v128.store(outlines + at, zero);
        }
        level = over(level, outlined, outlineSum);
        outlineSum = v128.shuffle<f32>(outlineSum, outlineSum, 3, 3, 3, 3);
      }
      v128.store(levels + at, level);
    }
  }
  firstRow = height;
  lastRow = -1;
}

// Gather a disc of this radius, seen through the linear map (a c / b d), for `erase`. Two scan lines a row.
export function disc(x: f32, y: f32, radius: f32, a: f32, b: f32, c: f32, d: f32): void {
  const C = b * b + d * d;
  const determinant = a * d - b * c;
  if (C == 0 || determinant == 0) return;
  // An ellipse: at height h its middle has moved by slant * h, and it is wide * sqrt(reach^2 - h^2) to either side.
  const slant = (a * b + c * d) / C;
  const wide: f32 = abs(determinant) / C;
  const reach: f32 = radius * sqrt<f32>(C);
  const from = max<f32>(<f32>top, y - reach);
  const to = min<f32>(<f32>bottom, y + reach);
  if (from >= to) return;
  const last = <i32>ceil(to);
  for (let row = <i32>from; row < last; row++) {
    for (let k = 0; k < 2; k++) {
      const lineTop: f32 = max<f32>(<f32>row + 0.5 * <f32>k, from);
      const lineBottom: f32 = min<f32>(<f32>row + 0.5 * <f32>k + 0.5, to);
      if (lineTop >= lineBottom) continue;
      const h: f32 = 0.5 * (lineTop + lineBottom) - y;
      const square = reach * reach - h * h;
      if (square <= 0) continue;
      const half: f32 = wide * sqrt<f32>(square);
      const middle = x + slant * h;
      const start = max<f32>(<f32>left, middle - half);
      const stop = min<f32>(<f32>right, middle + half);
      if (start >= stop) continue;
      const tall = lineBottom - lineTop;
      const at = <usize>(row * pitch) << 2;
      const first = <i32>start;
      const beyond = <i32>stop;
      const skipped = tall * (start - <f32>first);
      const covered = tall * (stop - <f32>beyond);
      add(discs, at, first, tall - skipped);
      add(discs, at, first + 1, skipped);
      add(discs, at, beyond, covered - tall);
      add(discs, at, beyond + 1, -covered);
    }
  }
}

@inline function erased(level: f32, strength: f32): f32 {
  return nearest<f32>(level - level * strength);
}

function extendTable(rows: i32): void {
  for (; tableRows < rows; tableRows++) {
    const row = table + (<usize>tableRows << 8);
    for (let level = 0; level < 256; level++) {
      const before = tableRows == 0 ? level : <i32>load<u8>(row - 256 + level);
      store<u8>(row + level, <u8>(tableRows == 0 ? <f32>before : erased(<f32>before, tableStrength)));
    }
  }
}

// Erase with this alpha, once for each gathered disc that covers a pixel.
export function erase(strength: f32): void {
  if (strength != tableStrength) {
    tableStrength = strength;
    tableRows = 0;
  }
  for (let y = top; y < bottom; y++) {
    const row = <usize>(y * pitch) << 2;
    let sum: f32 = 0;
    for (let x = left; x <= right + 1; x++) {
      const at = row + (<usize>x << 2);
      const gathered = load<f32>(discs + at);
      if (gathered != 0) {
        sum += gathered;
        store<f32>(discs + at, 0);
      }
      const level = load<f32>(levels + at);
      if (level == 0 || sum < 0.001) continue;
      const whole = min<i32>(<i32>(sum + 0.001), MOST_ERASURES);
      const part = max<f32>(0, sum - <f32>whole);
      if (whole >= tableRows) extendTable(whole + 1);
      const low = <i32>level;
      const entry = table + (<usize>whole << 8) + low;
      const here = <f32>load<u8>(entry);
      const above = low < 255 ? <f32>load<u8>(entry, 1) : here;
      const after = here + (level - <f32>low) * (above - here);
      store<f32>(levels + at, after - part * (after - erased(after, strength)));
    }
  }
}

export function clear(): void {
  if (right > left) {
    const from = left & ~3;
    for (let y = top; y < bottom; y++) {
      memory.fill(levels + (<usize>(y * pitch + from) << 2), 0, <usize>(right + 8 - from) << 2);
    }
  }
  left = width;
  right = 0;
  top = height;
  bottom = 0;
}

// The rectangle as RGBA bytes, row by row: black with the levels as alpha.
export function read(x: i32, y: i32, w: i32, h: i32): void {
  let to = bytes;
  for (let row = y; row < y + h; row++) {
    let at = levels + (<usize>(row * pitch + x) << 2);
    for (let i = 0; i < w; i++) {
      store<u32>(to, <u32>ceil<f32>(load<f32>(at) - 0.02) << 24);
      at += 4;
      to += 4;
    }
  }
}
