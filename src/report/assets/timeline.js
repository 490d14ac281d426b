// SPDX-License-Identifier: Apache-2.0
// The rows of a timeline: one per device, compute above, transfers and copies as thin lines below it.

const AXIS = 20, GAP = 3;

function barHeight(devices) {
  if (devices <= 8) return 26;
  if (devices <= 16) return 20;
  if (devices <= 32) return 14;
  return devices <= 64 ? 9 : Math.max(3, Math.floor(512 / devices));
}

// Lanes other than compute that some device of the run uses.
function transferLanes(track) {
  if (!track.devices || !state.transfers || track.run.devices > 64) return [];
  const used = new Set(track.devices.flatMap((events) => [...events.lanes.keys()]));
  return [1, 2, 3, 4, 5].filter((lane) => used.has(lane));
}

// Appends the rows from y on; returns where they end.
function layoutRows(panel, y) {
  const bar = barHeight(panel.track.run.devices), thin = bar >= 14 ? 4 : 2;
  const lanes = transferLanes(panel.track);
  for (let device = 0; device < panel.track.run.devices; ++device) {
    const row = {
      type: 'row',
      device,
      y,
      bar,
      lanes: lanes.map((lane, i) => ({lane, y: y + bar + 1 + i * (thin + 1), height: thin}))
    };
    row.height = bar + (lanes.length > 0 ? 1 + lanes.length * (thin + 1) : 0);
    panel.regions.push(row);
    y += row.height + GAP;
  }
  return y;
}

function firstWhere(length, holds) {
  let low = 0, high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

// A receive is shown from when its message was sent: before that it was only posted.
function shownStart(track, d, op) {
  const device = track.run.ops[d], start = track.devices[d].start[op];
  if (device.partner[op] < 0 || !data.kinds[device.kind[op]].word.startsWith('RECV_')) return start;
  return Math.min(
      track.devices[d].end[op], Math.max(start, track.devices[device.peer[op]].start[device.partner[op]]));
}

function visibleOps(events, lane, from, to, act) {
  const {ops, latest} = events.lanes.get(lane) || {ops: [], latest: []};
  for (let i = firstWhere(ops.length, (k) => latest[k] >= from); i < ops.length; ++i) {
    if (events.start[ops[i]] > to) return;
    act(ops[i]);
  }
}

const shades = new Map();
function shade(hex, chunk, chunks) {
  const key = hex + chunk + '/' + chunks;
  if (!shades.has(key)) {
    const light = chunks <= 1 ? 1 : 1 - 0.25 * chunk / (chunks - 1);  // chunk_lightness() of palette.h
    const parts = [1, 3, 5].map((i) => Math.round(parseInt(hex.slice(i, i + 2), 16) * light));
    shades.set(key, 'rgb(' + parts.join(',') + ')');
  }
  return shades.get(key);
}

function drawBars(panel, g, row) {
  const {track, x} = panel, d = row.device, device = track.run.ops[d], events = track.devices[d];
  const labels = [];
  visibleOps(events, 0, state.from, state.to, (op) => {
    const left = Math.max(x(events.start[op]), panel.left), right = Math.min(x(events.end[op]), panel.right);
    const kind = data.kinds[device.kind[op]], width = right - left;
    g.fillStyle = shade(kind.colour, device.chunkOf.get(device.stage[op]) || 0, device.chunks);
    g.fillRect(left, row.y, Math.max(width > 4 ? width - 1 : width, 0.3), row.bar);
    if (width > 12 && row.bar >= 12) labels.push([op, (left + right) / 2, width]);
  });
  g.fillStyle = '#1a1a1a';
  for (const [op, middle, width] of labels) {
    const kind = data.kinds[device.kind[op]];
    const text = kind.key === 'full' ? keyText(track.run, device, op) : kind.word;
    if (text.length * 5.6 + 2 < width) g.fillText(text, middle, row.y + row.bar / 2 + 0.5);
  }
}

function drawTransfers(panel, g, row) {
  const {track, x} = panel, d = row.device, device = track.run.ops[d], events = track.devices[d];
  for (const {lane, y, height} of row.lanes) {
    let drawn = -Infinity;
    visibleOps(events, lane, state.from, state.to, (op) => {
      const left = Math.max(x(shownStart(track, d, op)), panel.left),
            right = Math.min(x(events.end[op]), panel.right);
      if (right < Math.max(left, drawn + 0.3)) return;  // would show nothing new
      g.fillStyle = data.kinds[device.kind[op]].colour;
      g.fillRect(left, y, Math.max(right - left, 1), height);
      drawn = right;
    });
  }
}

// A timeline too large for single actions: in each slot of time the kinds' shares, stacked.
function drawShares(panel, g, row) {
  const {track, x} = panel, shares = track.shares[row.device], kinds = data.compute;
  const width = track.makespan / track.slots;
  const last = Math.min(track.slots - 1, Math.floor(state.to / width));
  for (let slot = Math.max(0, Math.floor(state.from / width)); slot <= last; ++slot) {
    const left = Math.max(x(slot * width), panel.left), right = Math.min(x((slot + 1) * width), panel.right);
    let bottom = row.y + row.bar;
    kinds.forEach((kind, k) => {
      const height = row.bar * shares[slot * kinds.length + k] / 255;
      if (height === 0) return;
      g.fillStyle = data.kinds[kind].colour;
      g.fillRect(left, bottom - height, right - left + 0.3, height);
      bottom -= height;
    });
  }
}

function drawRows(panel, g) {
  const rows = panel.regions.filter((region) => region.type === 'row');
  const every = Math.ceil(11 / (rows[0].height + GAP));
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  for (const row of rows) {
    g.fillStyle = panel.ink.row;
    const end = Math.min(panel.right, panel.x(panel.track.makespan));
    if (end > panel.left) g.fillRect(panel.left, row.y, end - panel.left, row.bar);
    g.textAlign = 'center';
    if (panel.track.devices) {
      drawBars(panel, g, row);
      drawTransfers(panel, g, row);
    } else
      drawShares(panel, g, row);
    g.textAlign = 'right';
    g.fillStyle = panel.ink.text;
    if (row.device % every === 0)
      g.fillText(rowLabel(panel, row.device), labelRight(panel), row.y + row.bar / 2 + 0.5);
  }
  drawGroups(panel, g, rows);
}

const rowLabel = (panel, row) => panel.narrow ? String(row) : rowName(panel.track.run, row);

// Beside its label a row has a mark for each kind of group, in the colour of its group.
const MARK = 6;
const labelRight = (panel) => panel.left - 7 - (MARK + 3) * panel.track.run.groups.length;

// What labels and marks take left of the rows; panels under one another have one time axis.
function labelWidth(panels, narrow) {
  const widths = panels.map(({track: {run}}) => {
    const longest = Math.max(11, greatestOf(run.rows.map((name) => name.length)));
    return (narrow ? 50 : 10 + 6 * longest) + (MARK + 3) * run.groups.length;
  });
  return Math.max(...widths);
}

function drawGroups(panel, g, rows) {
  panel.track.run.groups.forEach((kind, k) => {
    const x = labelRight(panel) + 5 + (MARK + 3) * k;
    rows.forEach((row, r) => {
      const joined = r + 1 < rows.length && kind.of[row.device] === kind.of[row.device + 1];
      g.fillStyle = data.series[kind.of[row.device] % data.series.length];
      g.fillRect(x, row.y, MARK, row.height + (joined ? GAP : 0));
    });
    g.textAlign = 'center';
    g.fillStyle = panel.ink.text;
    g.fillText(kind.name[0], x + MARK / 2, 8);
  });
}

function drawAxis(panel, g) {
  const {step, values} = axisTicks(state.from, state.to, (panel.right - panel.left) / 110);
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  g.textAlign = 'left';
  for (const value of values) {
    const x = Math.round(panel.x(value)) + 0.5;
    g.fillStyle = panel.ink.grid;
    g.fillRect(x - 0.5, 12, 1, panel.height - 12);
    g.fillStyle = panel.ink.text;
    const text = axisSeconds(value, step, state.to);
    if (x + text.length * 6 < panel.right + 6) g.fillText(text, x + 3, 8);
  }
}

// The op under a point of a row, or -1. Thin bars may be missed by two pixels.
function opAt(panel, row, px, py) {
  const {track} = panel, events = track.devices[row.device];
  const thin = row.lanes.find((lane) => py >= lane.y - 0.5 && py < lane.y + lane.height + 0.5);
  const lane = thin ? thin.lane : py <= row.y + row.bar ? 0 : -1;
  const time = panel.time(px), slack = 2 * (state.to - state.from) / (panel.right - panel.left);
  let best = -1, nearest = Infinity;
  visibleOps(events, lane, time - slack, time + slack, (op) => {
    const from = shownStart(track, row.device, op), to = events.end[op];
    const away = Math.max(0, from - time, time - to) + (to - from) * 1e-6;
    if (Math.max(from - time, time - to) <= slack && away < nearest) {
      nearest = away;
      best = op;
    }
  });
  return best;
}
