// SPDX-License-Identifier: Apache-2.0
// Reads what src/report/html_program.cpp writes: columns of base-128 varints in base64.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function columnReader(base64) {
  const bytes = bytesOf(base64);
  let at = 0;
  const next = () => {
    let value = 0, scale = 1;
    for (; bytes[at] >= 128; ++at, scale *= 128) value += (bytes[at] - 128) * scale;
    return value + bytes[at++] * scale;
  };
  const signed = () => {
    const value = next();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  return {next, signed};
}

function readSums(reader, column) {
  let sum = 0, zeros = 0;
  for (let i = 0; i < column.length; ++i) {
    const difference = zeros > 0 ? 0 : reader.signed();
    if (zeros > 0)
      --zeros;
    else if (difference === 0)
      zeros = reader.next();
    column[i] = sum += difference;
  }
  return column;
}

function decodeDevice(base64, sizes) {
  const reader = columnReader(base64);
  const count = reader.next();
  const plain = (column) => column.map(() => reader.next());
  const device = {count};
  device.kind = plain(new Uint8Array(count));
  device.stage = readSums(reader, new Int32Array(count));
  device.microBatch = readSums(reader, new Int32Array(count));
  device.slice = readSums(reader, new Int32Array(count));
  device.peer = plain(new Int32Array(count)).map((peer) => peer - 1);
  device.bytes = plain(new Float64Array(count)).map((index) => sizes[index]);
  const waits = plain(new Int32Array(count));
  device.after = Array.from(waits, (n, i) => Array.from({length: n}, () => i - reader.next()));
  return device;
}

// The other half of each send and receive: messages of one (source, destination, word's end) match in order.
function matchMessages(devices, kinds) {
  const routes = new Map();
  const visit = (prefix, act) => devices.forEach((device, d) => {
    for (let i = 0; i < device.count; ++i) {
      const word = kinds[device.kind[i]].word;
      if (word.startsWith(prefix)) act(d, device.peer[i], word.slice(prefix.length), i);
    }
  });
  devices.forEach((device) => {
    device.partner = new Int32Array(device.count).fill(-1);
  });
  visit('RECV_', (d, peer, channel, i) => {
    const route = peer + '>' + d + channel;
    if (!routes.has(route)) routes.set(route, {ops: [], next: 0});
    routes.get(route).ops.push(i);
  });
  visit('SEND_', (d, peer, channel, i) => {
    const route = routes.get(d + '>' + peer + channel);
    if (!route || route.next >= route.ops.length) return;
    const receive = route.ops[route.next++];
    devices[d].partner[i] = receive;
    devices[peer].partner[receive] = i;
  });
}

function decodeProgram(json, kinds) {
  const devices = json.devices.map((base64) => decodeDevice(base64, json.sizes));
  matchMessages(devices, kinds);
  for (const device of devices) {
    const acts = (i) => ['F', 'B', 'I', 'W'].includes(kinds[device.kind[i]].word);
    const stages = [...new Set(device.stage.filter((_, i) => acts(i)))];
    stages.sort((a, b) => a - b);
    device.chunks = stages.length;
    device.chunkOf = new Map(stages.map((stage, chunk) => [stage, chunk]));
  }
  return devices;
}

// The ops of each lane by start, with the latest end of all up to each, for finding those in a window.
function lanesOf(device, start, end, kinds) {
  const lanes = new Map();
  for (let i = 0; i < device.count; ++i) {
    const lane = kinds[device.kind[i]].lane;
    if (!lanes.has(lane)) lanes.set(lane, {ops: []});
    lanes.get(lane).ops.push(i);
  }
  for (const lane of lanes.values()) {
    if (lane.ops.some((op, i) => i > 0 && start[op] < start[lane.ops[i - 1]]))
      lane.ops.sort((a, b) => start[a] - start[b] || a - b);
    let latest = -Infinity;
    lane.latest = Float64Array.from(lane.ops, (op) => (latest = Math.max(latest, end[op])));
  }
  return lanes;
}

function decodeEvents(base64, device, tick, kinds) {
  const reader = columnReader(base64);
  const start = new Float64Array(device.count), end = new Float64Array(device.count);
  const before = new Map();
  for (let i = 0; i < device.count; ++i) {
    const lane = kinds[device.kind[i]].lane;
    const from = (before.get(lane) || 0) + reader.signed();
    const to = from + reader.next();
    before.set(lane, to);
    start[i] = from * tick;
    end[i] = to * tick;
  }
  return {start, end, lanes: lanesOf(device, start, end, kinds)};
}

function decodeMemory(json, tick) {
  const reader = columnReader(json.data);
  const count = reader.next();
  const times = readSums(reader, new Float64Array(count)).map((t) => t * tick);
  const bytes =
      json.categories.map(() => readSums(reader, new Float64Array(count)).map((v) => v * json.unit));
  const total = times.map((_, i) => bytes.reduce((sum, column) => sum + column[i], 0));
  return {categories: json.categories, times, bytes, total, peak: total.reduce((a, b) => Math.max(a, b), 0)};
}

function decodeReport(json) {
  for (const run of json.runs) {
    run.ops = run.program && decodeProgram(run.program, json.kinds);
    run.sliced = run.slices.some((n) => n !== 1);
    for (const track of run.tracks) {
      track.run = run;
      track.devices = track.events &&
          track.events.map((base64, d) => decodeEvents(base64, run.ops[d], track.tick, json.kinds));
      track.shares = track.shares && track.shares.map(bytesOf);
      track.memory = track.memory.map((memory) => decodeMemory(memory, track.tick));
      track.peak = track.memory.reduce((peak, memory) => Math.max(peak, memory.peak), 0);
    }
  }
  return json;
}
