// SPDX-License-Identifier: Apache-2.0
// Maps of numbers around 1 as colours: blue below, the ground's at 1, red above.

const HEAT = {left: 74, top: 20, width: 520, rowHeight: 18, text: 30};

// Twice the mean and nothing at all are the ends.
function heatColour(value) {
  const far = Math.min(Math.abs(value - 1), 1);
  return 'color-mix(in srgb, ' + (value > 1 ? '#cc3311' : '#0077bb') + ' ' + Math.round(85 * far) + '%, var(--row))';
}

function heatCells(map, cell) {
  return map.values.flatMap((row, y) => row.map((value, x) => {
    const name = map.row + ' ' + y + ', ' + map.column + ' ' + x + ': ' + value.toFixed(2);
    const left = HEAT.left + x * cell, top = HEAT.top + y * HEAT.rowHeight;
    const square = svg(
        'rect', {x: left, y: top, width: cell - 1, height: HEAT.rowHeight - 1, style: 'fill: ' + heatColour(value)},
        svg('title', {}, name));
    if (cell < HEAT.text) return square;
    const said = svg('text', {x: left + cell / 2, y: top + 13, 'text-anchor': 'middle'}, value.toFixed(2));
    return svg('g', {}, square, said);
  }));
}

// Names of the columns, and of the rows, as many as have room.
function heatNames(map, cell) {
  const columns = map.values[0].map((_, x) => x), every = Math.ceil(28 / cell);
  return [
    ...columns.filter((x) => x % every === 0).map((x) => svg('text', {
                                                      x: HEAT.left + (x + 0.5) * cell,
                                                      y: HEAT.top - 6,
                                                      'text-anchor': 'middle'
                                                    }, String(x))),
    ...map.values.map((_, y) => svg('text', {
                        x: HEAT.left - 6,
                        y: HEAT.top + y * HEAT.rowHeight + 13,
                        'text-anchor': 'end'
                      }, map.row + ' ' + y))
  ];
}

function heatFigure(run, map) {
  const cell = (HEAT.width - HEAT.left) / map.values[0].length;
  const height = HEAT.top + map.values.length * HEAT.rowHeight;
  const name = (data.runs.length > 1 ? run.name + ': ' : '') + map.title;
  const keys = [['none', 0], ['1', 1], ['2 or more', 2]].map(
      ([text, value]) => element('span', {class: 'key'}, swatch(heatColour(value)), text));
  return element(
      'figure', {class: 'wide'}, element('figcaption', {}, name, ...keys),
      map.note ? element('p', {class: 'note'}, map.note) : null,
      svg('svg', {class: 'bars', viewBox: '0 0 ' + HEAT.width + ' ' + height, role: 'img', 'aria-label': name},
          heatNames(map, cell), heatCells(map, cell)));
}

function heatSection() {
  const figures =
      data.runs.flatMap((run) => run.heatMaps.filter((map) => map.values.length > 0).map((map) => heatFigure(run, map)));
  return figures.length > 0 ? section('Experts', element('div', {class: 'blocks'}, ...figures)) : null;
}
