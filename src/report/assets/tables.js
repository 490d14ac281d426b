// SPDX-License-Identifier: Apache-2.0
// Tables and texts below the drawings.

const section = (title, ...children) =>
    element('section', {class: 'part'}, element('h2', {}, title), ...children);

const looksNumeric = (text) =>
    /^([-+]?[\d.,]+(e[-+]?\d+)?\s*(%|[\u00b5a-zA-Z/]{1,12})?|\d+ (h \d+ min|min \d+ s))$/.test(text.trim());

// A column is set right when everything in it below the header is a number, a dash or empty.
function table({header, rows}) {
  const columns = Math.max(header.length, greatestOf(rows.map((row) => row.length)));
  const fits = (cell) => !cell || cell === '-' || looksNumeric(cell);
  const numeric = Array.from({length: columns}, (_, c) => c > 0 && rows.every((row) => fits(row[c])));
  const cells = (tag, row) =>
      Array.from({length: columns}, (_, c) => element(tag, {class: numeric[c] && 'number'}, row[c] || ''));
  return element(
      'table', {}, element('thead', {}, element('tr', {}, cells('th', header))),
      element('tbody', {}, rows.map((row) => element('tr', {}, cells('td', row)))));
}

function busyShare(track) {
  const busy = track.busy.reduce((sum, _, d) => sum + busyOf(track, d), 0);
  return track.makespan > 0 ? busy / (track.makespan * track.busy.length) : 0;
}

function overviewSection() {
  const rows = data.runs.flatMap(
      (run) => (run.shown.length > 0 ? run.shown : [null])
                   .map(
                       (track) =>
                           [run.name, track ? track.label : 'no timeline', ...sizesOf(run),
                            ...(track ?
                                    [
                                      printSeconds(track.makespan), printShare(1 - busyShare(track)),
                                      track.peak > 0 ? printBytes(track.peak) : ''
                                    ] :
                                    ['', '', ''])]));
  const header = ['run', 'timeline', 'rows', 'stages', 'micro-batches', 'step', 'idle', 'greatest peak'];
  const shared = (note) => data.runs.every((run) => run.notes.includes(note));
  const texts =
      data.runs.flatMap((run) => run.notes.map((note) => (shared(note) ? note : run.name + ': ' + note)));
  const notes = [...new Set(texts)].map((text) => element('li', {}, text));
  return element(
      'section', {class: 'part'}, element('div', {class: 'scroll overview'}, table({header, rows})),
      notes.length > 0 ? element('ul', {class: 'notes'}, notes) : null);
}

// Rows, stages and micro-batches; of what was not drawn nothing.
function sizesOf(run) {
  return run.devices > 0 ? [String(run.devices), String(run.stages), microBatches(run)] : ['', '', ''];
}

function microBatches(run) {
  const least = leastOf(run.slices), most = greatestOf(run.slices);
  const slices = least === most ? String(most) : least + ' to ' + most;
  return run.slices.length + (run.sliced ? ' of ' + slices + ' slices' : '');
}

function differenceRow(name, predicted, measured, print) {
  const difference = measured - predicted;
  return [
    name, print(predicted), print(measured), signed(print(difference), difference),
    predicted !== 0 ? signedPercent(difference, predicted) : ''
  ];
}

function kindMeans(track) {
  return data.compute.map((_, k) => {
    const seconds = track.busy.reduce((sum, row) => sum + row[k], 0),
          runs = track.counts.reduce((sum, row) => sum + row[k], 0);
    return runs > 0 ? seconds / runs : null;
  });
}

function differenceTables(predicted, measured) {
  const before = kindMeans(predicted), after = kindMeans(measured);
  const rows = [differenceRow('step', predicted.makespan, measured.makespan, printSeconds)];
  data.compute.forEach((kind, k) => {
    if (before[k] !== null && after[k] !== null)
      rows.push(differenceRow('mean ' + WORDS[data.kinds[kind].word], before[k], after[k], printSeconds));
  });
  predicted.busy.forEach(
      (_, d) => rows.push(
          differenceRow('busy, device ' + d, busyOf(predicted, d), busyOf(measured, d), printSeconds)));
  predicted.memory.forEach((memory, d) => {
    if (measured.memory[d])
      rows.push(differenceRow('peak memory, device ' + d, memory.peak, measured.memory[d].peak, printBytes));
  });
  return table({header: ['', 'predicted', 'measured', 'difference', ''], rows});
}

function differenceSection() {
  const blocks = data.runs
                     .map((run) => {
                       const predicted = run.shown.find((track) => !track.measured),
                             measured = run.shown.find((track) => track.measured);
                       if (!predicted || !measured) return null;
                       const name = (data.runs.length > 1 ? run.name + ': ' : '') + measured.label +
                           ' against ' + predicted.label;
                       return element(
                           'div', {class: 'block'}, element('h3', {}, name),
                           element('div', {class: 'scroll tall'}, differenceTables(predicted, measured)));
                     })
                     .filter((block) => block);
  return blocks.length > 0 ? section('Predicted and measured', element('div', {class: 'blocks'}, ...blocks)) :
                             null;
}

function tablesSection() {
  const blocks = data.runs.flatMap(
      (run) => run.tables.map(
          (one) => element(
              'div', {class: 'block'},
              element('h3', {}, (data.runs.length > 1 ? run.name + ': ' : '') + one.title),
              element('div', {class: 'scroll tall'}, table(one)))));
  return blocks.length > 0 ? section('Accounting', element('div', {class: 'blocks'}, ...blocks)) : null;
}

// Lines that not every run has are marked.
function configurationSection() {
  const runs = data.runs.filter((run) => run.configuration !== '');
  const everywhere = (line) => runs.every((run) => run.lines.has(line));
  for (const run of runs) run.lines = new Set(run.configuration.split('\n'));
  const blocks = runs.map(
      (run) => element(
          'details', {open: runs.length === 1}, element('summary', {}, run.name),
          element(
              'pre', {},
              run.configuration.trimEnd().split('\n').map(
                  (line) => everywhere(line) ? line + '\n' : element('mark', {}, line + '\n')))));
  return blocks.length > 0 ? section('Configuration', ...blocks) : null;
}
