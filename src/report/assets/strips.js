// SPDX-License-Identifier: Apache-2.0
// What lies under the rows on the same time axis: how late the measured run is, and each device's memory.

const LAG = 58, MEMORY = 46;

// The last entry at or before a time.
function entryAt(memory, time) {
  return Math.max(0, firstWhere(memory.times.length, (i) => memory.times[i] > time) - 1);
}

const predictionOf = (track) =>
    (track.measured && track.devices ? track.run.shown.find((t) => !t.measured && t.devices) : null);

function layoutLag(panel, y) {
  if (!state.difference || !predictionOf(panel.track)) return y;
  panel.regions.push({type: 'lag', y: y + 8, height: LAG});
  return y + LAG + 14;
}

// Devices whose memory is shown: all of a few, else the fullest, else the one that was chosen.
function memoryDevices(track) {
  const all = track.memory.map((_, d) => d);
  if (!state.memory || all.length === 0) return [];
  if (state.memoryOf === 'all' || (state.memoryOf === 'auto' && all.length <= 8)) return all;
  if (state.memoryOf !== 'auto') return all.filter((d) => d === Number(state.memoryOf));
  return [all.reduce((most, d) => (track.memory[d].peak > track.memory[most].peak ? d : most), 0)];
}

function layoutMemory(panel, y) {
  const devices = memoryDevices(panel.track);
  if (devices.length > 0) y += 8;
  for (const device of devices) {
    panel.regions.push({type: 'memory', device, y, height: MEMORY});
    y += MEMORY + 6;
  }
  return y;
}

const isHidden = (category) => state.hidden.has(category);

function shownPeak(track) {
  return track.memory.reduce((peak, memory) => {
    for (let i = 0; i < memory.times.length; ++i) {
      const sum = memory.categories.reduce((s, name, c) => (isHidden(name) ? s : s + memory.bytes[c][i]), 0);
      peak = Math.max(peak, sum);
    }
    return peak;
  }, 0);
}

function drawGround(panel, g, region) {
  g.fillStyle = panel.ink.row;
  const end = Math.min(panel.right, panel.x(panel.track.makespan));
  if (end > panel.left) g.fillRect(panel.left, region.y, end - panel.left, region.height);
  return end;
}

// One category's area between two step functions, from right to left along the lower one.
function fillSteps(panel, g, memory, first, last, lower, upper, y) {
  const left = (i) => Math.max(panel.left, panel.x(memory.times[i]));
  const right = (i) =>
      (i + 1 < memory.times.length ? Math.min(panel.right, panel.x(memory.times[i + 1])) :
                                     Math.min(panel.right, panel.x(panel.track.makespan)));
  g.beginPath();
  for (let i = first; i <= last; ++i) {
    g.lineTo(left(i), y(upper[i]));
    g.lineTo(right(i), y(upper[i]));
  }
  for (let i = last; i >= first; --i) {
    g.lineTo(right(i), y(lower[i]));
    g.lineTo(left(i), y(lower[i]));
  }
  g.fill();
}

function drawMemory(panel, g, region, most) {
  const memory = panel.track.memory[region.device];
  const end = drawGround(panel, g, region);
  if (memory.times.length === 0) return;
  const y = (bytes) => region.y + region.height * (1 - bytes / (most || 1));
  const first = entryAt(memory, state.from), last = entryAt(memory, state.to);
  let lower = new Float64Array(memory.times.length);
  memory.categories.forEach((name, c) => {
    if (isHidden(name)) return;
    const upper = lower.map((value, i) => value + memory.bytes[c][i]);
    g.fillStyle = categoryColour(name);
    fillSteps(panel, g, memory, first, last, lower, upper, y);
    lower = upper;
  });
  const peak = lower.reduce((a, b) => Math.max(a, b), 0);
  g.textAlign = 'right';
  g.fillStyle = panel.ink.text;
  g.fillText(rowLabel(panel, region.device), panel.left - 7, region.y + 9);
  g.fillText(
      panel.narrow ? printBytes(peak).replace('iB', '') : printBytes(peak), panel.left - 7, region.y + 24);
  g.fillStyle = panel.ink.faint;
  if (!panel.narrow) g.fillText('peak', panel.left - 7, region.y + 38);
  if (end > panel.left) g.fillRect(panel.left, Math.round(y(peak)), end - panel.left, 1);
}

// Seconds by which each compute op ended later than predicted, one line per device.
function lagPoints(panel) {
  const {track} = panel, prediction = predictionOf(track);
  if (panel.lag) return panel.lag;
  panel.lag = track.devices.map((events, d) => {
    const lane = events.lanes.get(0) || {ops: []};
    return lane.ops.map((op) => [events.end[op], events.end[op] - prediction.devices[d].end[op]]);
  });
  const values = panel.lag.flat().map((point) => point[1]);
  panel.lagRange = values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [0, 0]);
  return panel.lag;
}

function drawLag(panel, g, region) {
  const lines = lagPoints(panel), [low, high] = panel.lagRange, span = high - low || 1;
  const y = (value) => region.y + 3 + (region.height - 6) * (high - value) / span;
  const end = drawGround(panel, g, region);
  g.save();
  g.beginPath();
  g.rect(panel.left, region.y, panel.right - panel.left, region.height);
  g.clip();
  g.fillStyle = panel.ink.faint;
  if (end > panel.left) g.fillRect(panel.left, Math.round(y(0)), end - panel.left, 1);
  g.lineWidth = 1.2;
  lines.forEach((points, d) => {
    g.strokeStyle = data.lines[d % data.lines.length];
    g.beginPath();
    let drawn = -Infinity;
    for (const [time, value] of points) {
      if (panel.x(time) - drawn < 0.5) continue;
      drawn = panel.x(time);
      g.lineTo(drawn, y(value));
    }
    g.stroke();
  });
  g.restore();
  drawLagLabels(panel, g, region, y);
}

function drawLagLabels(panel, g, region, y) {
  const [low, high] = panel.lagRange;
  g.textAlign = 'right';
  g.fillStyle = panel.ink.text;
  g.fillText(panel.narrow ? 'late' : 'later by', panel.left - 7, region.y + region.height / 2);
  if (!panel.narrow && high > 0)
    g.fillText(signed(printSeconds(high, 3), high), panel.left - 7, region.y + 7);
  if (!panel.narrow && low < 0 && y(low) - y(high) > 30)
    g.fillText(printSeconds(low, 3), panel.left - 7, region.y + region.height - 6);
}

function explainLag(panel, time) {
  const nearest = (points) => points[Math.max(0, firstWhere(points.length, (i) => points[i][0] > time) - 1)];
  const lines = lagPoints(panel).map(
      (points, d) =>
          [rowName(panel.track.run, d),
           points.length > 0 ? signed(printSeconds(nearest(points)[1]), nearest(points)[1]) : '']);
  return {title: 'measured minus predicted end, at ' + printSeconds(time), lines: lines.slice(0, 24)};
}
