// SPDX-License-Identifier: Apache-2.0
// Charts of stacked bars: memory by category, time by term, counts.

const CHART_UNITS = {
  seconds: printSeconds,
  bytes: printBytes,
  count: (value) => value.toLocaleString('en')
};
const partColour = (index) => [...data.series, ...data.more][index % (data.series.length + data.more.length)];

function barRow(chart, row, total, longest) {
  const print = CHART_UNITS[chart.unit];
  const pieces = chart.parts.map((part, p) => {
    const piece = element('span', {title: part.name + ': ' + print(part.values[row])});
    piece.style.background = partColour(p);
    piece.style.width = 100 * part.values[row] / longest + '%';
    return piece;
  });
  return element(
      'div', {class: 'barrow'},
      element('div', {class: 'barname'}, element('span', {}, chart.rows[row]), element('b', {}, print(total))),
      element('div', {class: 'bar'}, pieces.filter((_, p) => chart.parts[p].values[row] > 0)));
}

function barNumbers(chart, totals) {
  const print = CHART_UNITS[chart.unit];
  const rows = chart.rows.map(
      (name, row) => [name, ...chart.parts.map((part) => print(part.values[row])), print(totals[row])]);
  return element(
      'details', {}, element('summary', {}, 'numbers'),
      element('div', {class: 'scroll tall'}, table({header: ['', ...chart.parts.map((p) => p.name), 'all'], rows})));
}

function barSection(chart) {
  const totals = chart.rows.map((_, row) => chart.parts.reduce((sum, part) => sum + part.values[row], 0));
  const longest = Math.max(greatestOf(totals), 1e-300), several = chart.parts.length > 1;
  const keys = chart.parts.map((part, p) => element('span', {class: 'key'}, swatch(partColour(p)), part.name));
  return section(
      chart.title, chart.note ? element('p', {class: 'note'}, chart.note) : null,
      several ? element('p', {class: 'keys'}, keys) : null,
      element('div', {class: 'barchart'}, totals.map((total, row) => barRow(chart, row, total, longest))),
      several ? barNumbers(chart, totals) : null);
}
