// SPDX-License-Identifier: Apache-2.0
// Drawings that do not share the timeline's axis: bars of idle time, curves over the steps of a run.

function clipToData(values) {
  const finite = values.filter((value) => value !== null);
  const low = leastOf(finite), high = greatestOf(finite);
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  if (finite.length === 0) return [0, 1];
  return [low === 0 ? 0 : low - margin, high + margin];
}

function metricGroups() {
  const groups = new Map();
  data.runs.forEach((run, r) => run.metrics.forEach((metric) => {
    if (!groups.has(metric.name)) groups.set(metric.name, []);
    groups.get(metric.name).push({
      ...metric,
      run,
      colour: data.lines[r % data.lines.length],
      dash: r >= data.lines.length ? '5 3' : undefined
    });
  }));
  return groups;
}

const CURVE = {
  width: 480,
  height: 230,
  left: 58,
  right: 470,
  top: 12,
  bottom: 200
};

function curveScales(curves) {
  const steps = curves.flatMap((curve) => curve.steps),
        [low, high] = clipToData(curves.flatMap((curve) => curve.values));
  const alone = leastOf(steps) === greatestOf(steps) ? 0.5 : 0;
  const first = leastOf(steps) - alone, last = greatestOf(steps) + alone;
  return {
    low,
    high,
    first,
    last,
    x: (step) => CURVE.left + (step - first) / (last - first) * (CURVE.right - CURVE.left),
    y: (value) => CURVE.bottom - (value - low) / (high - low) * (CURVE.bottom - CURVE.top),
  };
}

// A path that leaves a gap where a value is missing.
function curvePath(curve, scales) {
  let pen = 'M';
  return curve.values
      .map((value, i) => {
        if (value === null) {
          pen = 'M';
          return '';
        }
        const text = pen + scales.x(curve.steps[i]).toFixed(1) + ' ' + scales.y(value).toFixed(1);
        pen = 'L';
        return text;
      })
      .join('');
}

// Values without a neighbour, which a path does not show.
function lonePoints(curve, scales) {
  const lone = (value, i) => value !== null && (curve.values[i - 1] ?? null) === null &&
      (curve.values[i + 1] ?? null) === null;
  return curve.values.flatMap(
      (value, i) =>
          lone(value, i) ?
          [svg('circle', {cx: scales.x(curve.steps[i]), cy: scales.y(value), r: 3, fill: curve.colour})] :
          []);
}

// The place of a label centred under x, moved left where the drawing would cut it.
const labelPlace = (x, text) => Math.min(x, CURVE.width - 1 - 3.3 * text.length);

function curveAxes(scales) {
  const parts = [];
  const rows = axisTicks(scales.low, scales.high, 5), columns = axisTicks(scales.first, scales.last, 6, 1);
  const greatest = Math.max(Math.abs(scales.low), Math.abs(scales.high));
  for (const value of rows.values) {
    parts.push(svg(
        'line', {class: 'grid', x1: CURVE.left, x2: CURVE.right, y1: scales.y(value), y2: scales.y(value)}));
    parts.push(
        svg('text', {x: CURVE.left - 6, y: scales.y(value) + 4, 'text-anchor': 'end'},
            axisNumber(value, rows.step, greatest)));
  }
  for (const value of columns.values) {
    const text = axisNumber(value, columns.step, scales.last);
    parts.push(
        svg('text', {x: labelPlace(scales.x(value), text), y: CURVE.bottom + 16, 'text-anchor': 'middle'}, text));
  }
  parts.push(
      svg('text', {x: (CURVE.left + CURVE.right) / 2, y: CURVE.height - 4, 'text-anchor': 'middle'}, 'step'));
  return parts;
}

function nearestPoint(curve, step) {
  const i = Math.min(curve.steps.length - 1, firstWhere(curve.steps.length, (k) => curve.steps[k] >= step));
  return i > 0 && step - curve.steps[i - 1] < curve.steps[i] - step ? i - 1 : i;
}

function followPointer(drawing, curves, scales, cursor, said) {
  drawing.addEventListener('pointermove', (event) => {
    const box = drawing.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * CURVE.width;
    const step = scales.first + (x - CURVE.left) / (CURVE.right - CURVE.left) * (scales.last - scales.first);
    const at = curves.map((curve) => [curve, nearestPoint(curve, step)]);
    cursor.setAttribute('visibility', 'visible');
    cursor.setAttribute('d', 'M' + scales.x(at[0][0].steps[at[0][1]]) + ' ' + CURVE.top + 'V' + CURVE.bottom);
    said.textContent =
        at.map(
              ([curve, i]) => (curves.length > 1 ? curve.run.name + ' ' : '') + 'step ' + curve.steps[i] +
                  ': ' + (curve.values[i] === null ? 'none' : Number(curve.values[i].toPrecision(6))))
            .join(' \u00b7 ');
  });
  drawing.addEventListener('pointerleave', () => {
    cursor.setAttribute('visibility', 'hidden');
    said.textContent = '\u00a0';
  });
}

// Curves on one another, as the losses of one model under two schedules are, show all of their colours in turn.
function curveLines(curves, scales) {
  const DASH = 6, places = curves.map((curve) => curve.values.map((value) => value === null ? null : scales.y(value)));
  const covers = (a, b) => curves[a].steps.length === curves[b].steps.length &&
      curves[a].steps.every((step, i) => step === curves[b].steps[i]) &&
      places[a].every((y, i) => y === places[b][i] || (y !== null && places[b][i] !== null && Math.abs(y - places[b][i]) < 1));
  return curves.map((curve, c) => {
    const together = curves.map((_, other) => other).filter((other) => covers(c, other));
    const place = together.indexOf(c), gap = DASH * (together.length - 1);
    return svg('path', {
      class: 'curve',
      d: curvePath(curve, scales),
      stroke: curve.colour,
      'stroke-dasharray': gap > 0 ? DASH + ' ' + gap : curve.dash,
      'stroke-dashoffset': gap > 0 ? -DASH * place : undefined
    });
  });
}

function curveChart(name, curves) {
  const scales = curveScales(curves), said = element('p', {class: 'said'}, '\u00a0');
  const cursor = svg('path', {class: 'cursor', visibility: 'hidden'});
  const lines = curveLines(curves, scales);
  const drawing =
      svg('svg', {viewBox: '0 0 ' + CURVE.width + ' ' + CURVE.height, role: 'img', 'aria-label': name},
          curveAxes(scales), lines, curves.map((curve) => lonePoints(curve, scales)).flat(), cursor);
  followPointer(drawing, curves, scales, cursor, said);
  const unit = curves[0].unit ? ' (' + curves[0].unit + ')' : '';
  const legend = curves.length < 2 ?
      [] :
      curves.map((curve) => element('span', {class: 'key'}, swatch(curve.colour), curve.run.name));
  return element('figure', {}, element('figcaption', {}, name + unit, legend), drawing, said);
}

function curvesSection() {
  const charts =
      [...metricGroups()]
          .map(([name, curves]) => [name, curves.filter((curve) => curve.values.some((v) => v !== null))])
          .filter(([, curves]) => curves.length > 0)
          .map(([name, curves]) => curveChart(name, curves));
  return charts.length > 0 ? section('Over the steps', element('div', {class: 'charts'}, ...charts)) : null;
}

// Where idle time has causes it knows of context exchange: waiting inside an action is none of its work, serving is work.
const busyOf = (track, d) =>
    track.idle.length > 0 ? track.idle.reduce((rest, {devices}) => rest - devices[d], track.makespan) :
                            track.busy[d].reduce((a, b) => a + b, 0);

// Parts of each device's step: what it was idle for, then busy. Unknown causes count as "idle".
function idleParts(track) {
  const devices = track.busy.map((_, d) => d);
  if (track.idle.length > 0) return track.idle;
  return [{cause: 'idle', devices: devices.map((d) => Math.max(0, track.makespan - busyOf(track, d)))}];
}

function idleBars(track, parts, longest) {
  const count = track.busy.length, pitch = count <= 16 ? 18 : count <= 64 ? 8 : 4, width = 520;
  const names = track.busy.map((_, d) => rowName(track.run, d));
  const left = Math.min(14 + 6 * greatestOf(names.map((name) => name.length)), width / 2);
  const bars = [];
  const rect = (x, d, share, colour, title) =>
      svg('rect', {
        x,
        y: d * pitch,
        width: Math.max(0, share * (width - left)),
        height: pitch - (pitch > 6 ? 2 : 0.5),
        fill: colour
      },
          svg('title', {}, title));
  for (let d = 0; d < count; ++d) {
    let x = left;
    const add = (name, seconds, colour) => {
      const share = seconds / longest;
      bars.push(rect(x, d, share, colour, names[d] + ', ' + name + ': ' + printSeconds(seconds)));
      x += share * (width - left);
    };
    parts.forEach((part, p) => add(part.cause, part.devices[d], causeColour(p)));
    add('busy', busyOf(track, d), 'var(--busy)');
    const baseline = d * pitch + Math.min(pitch, 14) / 2 + 4;
    if (d % Math.ceil(14 / pitch) === 0)
      bars.push(svg('text', {x: left - 6, y: baseline, 'text-anchor': 'end'}, names[d]));
  }
  return svg(
      'svg', {
        class: 'bars',
        viewBox: '0 -4 ' + width + ' ' + (count * pitch + 8),  // names are higher than the narrowest bars
        role: 'img',
        'aria-label': 'idle time by cause'
      },
      bars);
}

// From the other end than memory, so that causes are not taken for categories.
const causeColour = (index) => data.series[[2, 1, 3, 4, 5, 7, 6, 8, 0][index % 9]];

function idleTable(track, parts) {
  const rows = track.busy.map((_, d) => {
    const idle = parts.reduce((sum, part) => sum + part.devices[d], 0);
    return [
      rowName(track.run, d), printSeconds(busyOf(track, d)), ...parts.map((part) => printSeconds(part.devices[d])),
      ...(parts.length > 1 ? [printSeconds(idle)] : []),
      track.makespan > 0 ? printShare(idle / track.makespan) : ''
    ];
  });
  return table({
    header: [
      '', 'busy', ...parts.map((part) => part.cause), ...(parts.length > 1 ? ['all idle'] : []), 'of the step'
    ],
    rows
  });
}

function idleBlock(track, longest) {
  const parts = idleParts(track);
  const keys = parts.map((part, p) => element('span', {class: 'key'}, swatch(causeColour(p)), part.cause));
  const name = (data.runs.length > 1 ? track.run.name + ': ' : '') + track.label;
  return element(
      'div', {class: 'block'}, element('h3', {}, name),
      element('p', {class: 'keys'}, ...keys, element('span', {class: 'key'}, swatch('var(--busy)'), 'busy')),
      idleBars(track, parts, longest), element('div', {class: 'scroll tall'}, idleTable(track, parts)));
}

function idleSection() {
  const tracks = state.panels.map((panel) => panel.track);
  const longest = Math.max(...tracks.map((track) => track.makespan)) || 1;
  return section(
      'Idle time by cause',
      element('div', {class: 'blocks'}, ...tracks.map((track) => idleBlock(track, longest))));
}
