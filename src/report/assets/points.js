// SPDX-License-Identifier: Apache-2.0
// Charts of points that are joined as steps: the least of one quantity for each amount of another.

function pointScales(chart) {
  const xs = chart.points.map((point) => point.x), ys = chart.points.map((point) => point.y);
  const range = (values) => {
    const low = Math.min(...values), high = Math.max(...values), margin = (high - low || high || 1) * 0.08;
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

// Ticks of bytes fall on round numbers of their own unit.
function unitTicks(unit, from, to, wanted) {
  const scale = unit === 'bytes' ? 1024 ** Math.floor(Math.log(Math.max(to, 1)) / Math.log(1024)) : 1;
  return axisTicks(from / scale, to / scale, wanted).values.map((value) => value * scale);
}

const tickText = (unit, value) => unit === 'seconds' ? printSeconds(value, 3) : CHART_UNITS[unit](value);

function pointAxes(chart, scales) {
  const parts = [];
  for (const value of unitTicks(chart.yUnit, scales.low, scales.high, 5)) {
    const y = scales.y(value);
    parts.push(svg('line', {class: 'grid', x1: CURVE.left, x2: CURVE.right, y1: y, y2: y}));
    parts.push(svg('text', {x: CURVE.left - 6, y: y + 4, 'text-anchor': 'end'}, tickText(chart.yUnit, value)));
  }
  for (const value of unitTicks(chart.xUnit, scales.left, scales.right, 5)) {
    const text = tickText(chart.xUnit, value);
    parts.push(svg('text', {x: scales.x(value), y: CURVE.bottom + 16, 'text-anchor': 'middle'}, text));
  }
  const middle = (CURVE.left + CURVE.right) / 2;
  parts.push(svg('text', {x: middle, y: CURVE.height - 2, 'text-anchor': 'middle'}, chart.x));
  return parts;
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
      ...pointAxes(chart, scales),
      svg('path', {class: 'curve', d: stepPath(chart.points, scales), stroke: colour}), ...dots);
  const rows = chart.points.map((p) => [p.name, tickText(chart.xUnit, p.x), tickText(chart.yUnit, p.y)]);
  return section(
      chart.title, chart.note ? element('p', {class: 'note'}, chart.note) : null,
      element(
          'div', {class: 'blocks'}, element('figure', {class: 'wide'}, element('figcaption', {}, chart.y), drawing, said),
          element('div', {class: 'scroll tall'}, table({header: ['', chart.x, chart.y], rows}))));
}
