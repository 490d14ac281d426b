// SPDX-License-Identifier: Apache-2.0
// Charts of points: joined as steps, the least of one quantity for each amount of another; or two accounts of one
// quantity, beside the line on which they agree.

function comparedScales(chart) {
  const values = chart.points.flatMap((point) => [point.x, point.y]).map(Math.log10);
  const left = leastOf(values) - 0.05, right = greatestOf(values) + 0.05;
  const share = (value) => (Math.log10(value) - left) / (right - left);
  return {
    left: 10 ** left,
    right: 10 ** right,
    low: 10 ** left,
    high: 10 ** right,
    x: (value) => CURVE.left + share(value) * (CURVE.right - CURVE.left),
    y: (value) => CURVE.bottom - share(value) * (CURVE.bottom - CURVE.top),
  };
}

// One, two and five times the powers of ten.
function logarithmicTicks(from, to) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); ++power)
    ticks.push(...[1, 2, 5].map((factor) => factor * 10 ** power).filter((value) => value >= from && value <= to));
  const step = Math.ceil(ticks.length / 8);
  return ticks.filter((tick, i) => i % step === 0);
}

function pointScales(chart) {
  if (chart.compared) return comparedScales(chart);
  const xs = chart.points.map((point) => point.x), ys = chart.points.map((point) => point.y);
  const range = (values) => {
    const low = leastOf(values), high = greatestOf(values), margin = (high - low || high || 1) * 0.08;
    return [Math.max(0, low - margin), high + margin];
  };
  const [left, right] = range(xs), [low, high] = range(ys);
  return {
    left,
    right,
    low,
    high,
    x: (value) => CURVE.left + (value - left) / (right - left) * (CURVE.right - CURVE.left),
    y: (value) => CURVE.bottom - (value - low) / (high - low) * (CURVE.bottom - CURVE.top),
  };
}

function pointTicks(chart, unit, from, to) {
  return chart.compared ? logarithmicTicks(from, to) : unitTicks(unit, from, to, 5);
}

// Ticks of bytes fall on round numbers of their own unit.
function unitTicks(unit, from, to, wanted) {
  const scale = unit === 'bytes' ? 1024 ** Math.floor(Math.log(Math.max(to, 1)) / Math.log(1024)) : 1;
  return axisTicks(from / scale, to / scale, wanted).values.map((value) => value * scale);
}

const tickText = (unit, value) => unit === 'seconds' ? printSeconds(value, 3) : CHART_UNITS[unit](value);

function pointAxes(chart, scales) {
  const parts = [];
  for (const value of pointTicks(chart, chart.yUnit, scales.low, scales.high)) {
    const y = scales.y(value);
    parts.push(svg('line', {class: 'grid', x1: CURVE.left, x2: CURVE.right, y1: y, y2: y}));
    parts.push(svg('text', {x: CURVE.left - 6, y: y + 4, 'text-anchor': 'end'}, tickText(chart.yUnit, value)));
  }
  for (const value of pointTicks(chart, chart.xUnit, scales.left, scales.right)) {
    const text = tickText(chart.xUnit, value);
    const x = labelPlace(scales.x(value), text);
    parts.push(svg('text', {x, y: CURVE.bottom + 16, 'text-anchor': 'middle'}, text));
  }
  const middle = (CURVE.left + CURVE.right) / 2;
  parts.push(svg('text', {x: middle, y: CURVE.height - 2, 'text-anchor': 'middle'}, chart.x));
  return parts;
}

function pointPath(chart, scales) {
  if (!chart.compared) return stepPath(chart.points, scales);
  return 'M' + CURVE.left + ' ' + CURVE.bottom + 'L' + CURVE.right + ' ' + CURVE.top;
}

function stepPath(points, scales) {
  const places = points.map((point) => [scales.x(point.x).toFixed(1), scales.y(point.y).toFixed(1)]);
  return places.map(([x, y], i) => (i === 0 ? 'M' + x + ' ' + y : 'H' + x + 'V' + y)).join('');
}

function pointSection(chart) {
  const scales = pointScales(chart), colour = data.lines[0], said = element('p', {class: 'said'}, '\u00a0');
  const tell = (point) => point.name + ': ' + tickText(chart.xUnit, point.x) + ', ' + tickText(chart.yUnit, point.y);
  const dots = chart.points.map((point) => svg('circle', {
                                  cx: scales.x(point.x),
                                  cy: scales.y(point.y),
                                  r: 4,
                                  fill: colour,
                                  on: {pointerenter: () => said.textContent = tell(point)}
                                },
                                    svg('title', {}, tell(point))));
  const drawing = svg(
      'svg', {viewBox: '0 0 ' + CURVE.width + ' ' + CURVE.height, role: 'img', 'aria-label': chart.title},
      pointAxes(chart, scales),
      svg('path', {class: 'curve', d: pointPath(chart, scales), stroke: colour}), dots);
  const rows = chart.points.map((p) => [p.name, tickText(chart.xUnit, p.x), tickText(chart.yUnit, p.y)]);
  return section(
      chart.title, chart.note ? element('p', {class: 'note'}, chart.note) : null,
      element(
          'div', {class: 'blocks'}, element('figure', {class: 'wide'}, element('figcaption', {}, chart.y), drawing, said),
          element('div', {class: 'scroll tall'}, table({header: ['', chart.x, chart.y], rows}))));
}
