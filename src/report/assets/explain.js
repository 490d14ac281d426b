// SPDX-License-Identifier: Apache-2.0
// What the tip says of the thing under the pointer: pairs of a label and a text.

const counterpartOf = (track) => track.run.shown.find((other) => other !== track && other.devices);

function positionOnLane(events, lane, op) {
  const ops = events.lanes.get(lane).ops;
  let low = 0, high = ops.length - 1;
  for (; low < high;) {
    const middle = (low + high) >> 1;
    const before = events.start[ops[middle]] - events.start[op] || ops[middle] - op;
    if (before < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// When the lane was free for the op: the end of the op before it.
function laneFree(track, d, op) {
  const events = track.devices[d], lane = data.kinds[track.run.ops[d].kind[op]].lane;
  const position = positionOnLane(events, lane, op);
  return position > 0 ? events.end[events.lanes.get(lane).ops[position - 1]] : 0;
}

// The op among those named in `after` that ended last; -1 when it names none.
function lastWait(track, d, op) {
  const events = track.devices[d];
  return track.run.ops[d].after[op].reduce(
      (last, i) => (last < 0 || events.end[i] > events.end[last] ? i : last), -1);
}

// The op of another device that made what a receive brought, or null.
function producerOf(run, d, receive) {
  const peer = run.ops[d].peer[receive], send = run.ops[d].partner[receive];
  if (send < 0) return null;
  const after = run.ops[peer].after[send];
  return {device: peer, op: after.length > 0 ? after[after.length - 1] : send};
}

// What kept a compute op from starting when its lane was free; null when nothing did.
function waitOf(track, d, op) {
  const device = track.run.ops[d], events = track.devices[d];
  const free = laneFree(track, d, op), waited = events.start[op] - free;
  if (data.kinds[device.kind[op]].lane !== 0 || waited <= 2 * track.tick) return null;
  const last = lastWait(track, d, op);
  if (last < 0 || events.end[last] <= free + 2 * track.tick) return {waited, device: d, op: -1, via: -1};
  const producer =
      data.kinds[device.kind[last]].word.startsWith('RECV_') ? producerOf(track.run, d, last) : null;
  return producer ? {waited, ...producer, via: last} : {waited, device: d, op: last, via: -1};
}

function waitText(track, d, op) {
  const wait = waitOf(track, d, op);
  if (!wait) return 'nothing: it started when the device was free';
  const head = printSeconds(wait.waited) + ' ';
  if (wait.op < 0) return head + 'for nothing in the program';
  const ended = track.devices[wait.device].end[wait.op];
  const where = token(track.run, wait.device, wait.op) + ' on ' + rowName(track.run, wait.device);
  const arrival = wait.via < 0 ? '' : ', arrived ' + printSeconds(track.devices[d].end[wait.via]);
  return head + 'for ' + where + ' (ended ' + printSeconds(ended) + arrival + ')';
}

function transferText(track, d, op) {
  const device = track.run.ops[d], word = data.kinds[device.kind[op]].word;
  const way = word.startsWith('RECV_') ? ' from ' : word.startsWith('SEND_') ? ' to ' : ' with ';
  return printBytes(device.bytes[op]) + (device.peer[op] >= 0 ? way + rowName(track.run, device.peer[op]) : '');
}

// Bytes that a compute op waits for and those that wait for it.
function bytesLines(track, d, op) {
  const device = track.run.ops[d], kind = data.kinds[device.kind[op]];
  if (kind.lane !== 0) return [['moves', transferText(track, d, op)]];
  const lines = [];
  for (const i of device.after[op])
    if (device.bytes[i] > 0) lines.push(['takes', transferText(track, d, i)]);
  for (let i = op + 1; i < Math.min(op + 12, device.count); ++i) {
    const outgoing = /^(SEND_|OFFLOAD)/.test(data.kinds[device.kind[i]].word) && device.after[i].includes(op);
    if (outgoing && device.bytes[i] > 0) lines.push(['gives', transferText(track, d, i)]);
  }
  const memory = track.memory[d];
  if (memory)
    lines.push(['device holds', printBytes(memory.total[entryAt(memory, track.devices[d].end[op])])]);
  return lines;
}

function compareLines(track, d, op) {
  const other = counterpartOf(track);
  if (!other) return [];
  const length = (t) => t.devices[d].end[op] - t.devices[d].start[op];
  const mine = track.measured ? track : other, theirs = track.measured ? other : track;
  if (mine.measured === theirs.measured) return [];
  const longer = length(mine) - length(theirs),
        later = mine.devices[d].start[op] - theirs.devices[d].start[op];
  const share = length(theirs) > 0 ? ' (' + signedPercent(longer, length(theirs)) + ')' : '';
  return [
    [
      track.measured ? 'predicted' : 'measured',
      printSeconds(length(other)) + ', started ' + printSeconds(other.devices[d].start[op])
    ],
    [
      'measured differs',
      signed(printSeconds(longer), longer) + share + ', started ' + printSeconds(Math.abs(later)) +
          (later < 0 ? ' earlier' : ' later')
    ],
  ];
}

function messageLines(track, d, op) {
  const device = track.run.ops[d], word = data.kinds[device.kind[op]].word, partner = device.partner[op];
  if (partner < 0) return [];
  const events = track.devices[device.peer[op]];
  if (word.startsWith('RECV_')) return [['sent', printSeconds(events.start[partner])]];
  return [['arrived', printSeconds(events.end[partner])]];
}

// What a collective of replicas is about; the number after the last stage's stands for the vocabulary.
const unitText = (run, stage) =>
    stage === run.stages ? 'this device\'s part of the sharded vocabulary' : 'stage ' + stage;

function explainOp(track, d, op) {
  const run = track.run, device = run.ops[d], kind = data.kinds[device.kind[op]], events = track.devices[d];
  const what = WORDS[kind.word] || kind.word;
  const key = 'stage ' + device.stage[op] + ', micro-batch ' + device.microBatch[op] +
      (run.sliced ? ', slice ' + device.slice[op] : '');
  const lines = [[
    '',
    what +
        (kind.key === 'full'      ? ': ' + key :
             kind.key === 'stage' ? ': ' + unitText(run, device.stage[op]) :
                                    '')
  ]];
  const held = kind.key === 'full' && (run.sliceNotes[device.microBatch[op]] || [])[device.slice[op]];
  if (held) lines.push(['holds', held]);
  lines.push(['on', rowName(track.run, d) + ', ' + LANES[kind.lane]]);
  lines.push(['lasted', printSeconds(events.end[op] - events.start[op])]);
  lines.push([
    kind.word.startsWith('RECV_') ? 'posted, arrived' : 'from, to',
    printSeconds(events.start[op]) + ', ' + printSeconds(events.end[op])
  ]);
  if (kind.lane === 0) lines.push(['waited', waitText(track, d, op)]);
  lines.push(...messageLines(track, d, op), ...bytesLines(track, d, op), ...compareLines(track, d, op));
  return {title: token(run, d, op), lines};
}

// An idle stretch of a device's compute lane, and what ended it.
function explainGap(track, d, time) {
  const events = track.devices[d], ops = (events.lanes.get(0) || {ops: []}).ops;
  const next = firstWhere(ops.length, (i) => events.start[ops[i]] >= time);
  const from = next > 0 ? events.end[ops[next - 1]] : 0;
  if (next === ops.length)
    return {
      title: rowName(track.run, d) + ' idle',
      lines: [['from', printSeconds(from) + ' on: nothing left to do']]
    };
  const lines = [
    ['lasted', printSeconds(events.start[ops[next]] - from)],
    ['from, to', printSeconds(from) + ', ' + printSeconds(events.start[ops[next]])],
    ['next', token(track.run, d, ops[next])], ['waited', waitText(track, d, ops[next])]
  ];
  return {title: rowName(track.run, d) + ' idle', lines};
}

// Who a row shares its work with.
function explainGroups(run, row) {
  const others = (kind) => {
    const rows = run.rows.map((_, other) => other).filter(
        (other) => other !== row && kind.of[other] === kind.of[row]);
    const shown = rows.slice(0, 8).map((other) => rowName(run, other).split(':')[0]).join(', ');
    return shown + (rows.length > 8 ? ' and ' + (rows.length - 8) + ' more' : '');
  };
  return {
    title: rowName(run, row),
    lines: run.groups.map((kind) => [kind.name + ' group', 'with ' + others(kind)])
  };
}

function explainMemory(track, d, time) {
  const memory = track.memory[d], entry = entryAt(memory, time);
  const lines = memory.categories.map((name, c) => [name, printBytes(memory.bytes[c][entry])]).reverse();
  lines.push(['total', printBytes(memory.total[entry])], ['peak', printBytes(memory.peak)]);
  return {title: rowName(track.run, d) + ' holds at ' + printSeconds(time), lines};
}

function explainShare(track, d, slot) {
  const width = track.makespan / track.slots, kinds = data.compute;
  const lines =
      kinds.map((kind, k) => [WORDS[data.kinds[kind].word], track.shares[d][slot * kinds.length + k] / 255]);
  const busy = lines.reduce((sum, [, share]) => sum + share, 0);
  return {
    title: rowName(track.run, d) + ', ' + printSeconds(slot * width) + ' to ' + printSeconds((slot + 1) * width),
    lines: [
      ...lines.filter(([, share]) => share > 0).map(([name, share]) => [name, printShare(share)]),
      ['idle', printShare(Math.max(0, 1 - busy))]
    ],
  };
}
