// SPDX-License-Identifier: Apache-2.0
// The page: what is shown, the controls, the keys.

const data = decodeReport(JSON.parse(document.getElementById('data').textContent));
const state = {
  from: 0,
  to: 1,
  at: null,
  panels: [],
  hidden: new Set(),
  step: data.runs.map((run) => run.opensWith),
  transfers: true,
  memory: true,
  difference: true,
  memoryOf: 'auto',
  paper: false,
};
const categories = [...new Set(
    data.runs.flatMap((run) => run.tracks.flatMap((track) => track.memory.flatMap((m) => m.categories))))];
const categoryColour = (name) => data.series[categories.indexOf(name) % data.series.length];
const lastTime = () => Math.max(...state.panels.map((panel) => panel.track.makespan), 0) * 1.005 || 1;

function setView(from, to) {
  const all = lastTime(), width = Math.min(Math.max(to - from, all * 1e-6), all);
  state.from = Math.min(Math.max(from, 0), all - width);
  state.to = state.from + width;
  redraw();
}

function zoom(factor, around = (state.from + state.to) / 2) {
  setView(around - (around - state.from) * factor, around + (state.to - around) * factor);
}

const pan = (share) =>
    setView(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));
const fit = () => setView(0, lastTime());

// Many events between two frames are drawn once.
let waiting = false;
function redraw() {
  if (waiting || state.panels.length === 0) return;
  waiting = true;
  requestAnimationFrame(drawNow);
}

function drawNow() {
  const began = performance.now();
  waiting = false;
  state.width = state.panels[0].box.clientWidth;
  for (const panel of state.panels) panel.shownPeak = shownPeak(panel.track);
  for (const panel of state.panels) drawPanel(panel);
  state.drawMilliseconds = performance.now() - began;
}

function chooseTracks() {
  data.runs.forEach((run, r) => {
    const measured = run.tracks.filter((track) => track.measured);
    run.shown = [
      ...run.tracks.filter((track) => !track.measured),
      ...(measured.length > 0 ? [measured[state.step[r]]] : [])
    ];
  });
  state.panels = data.runs.flatMap((run) => run.shown.map(createPanel));
  showTip(null);
}

function checkbox(label, field) {
  const box = element('input', {
    type: 'checkbox',
    checked: state[field],
    on: {
      change: () => {
        state[field] = box.checked;
        redraw();
      }
    }
  });
  return element('label', {'data-field': field}, box, label);
}

const button = (text, title, act) => element('button', {type: 'button', title, on: {click: act}}, text);

function stepSelector(run, r) {
  const measured = run.tracks.filter((track) => track.measured);
  if (measured.length < 2) return null;
  const select = element(
      'select', {on: {change: () => changeStep(r, Number(select.value))}},
      ...measured.map(
          (track, i) => element('option', {value: i, selected: i === state.step[r]}, track.label)));
  return element('label', {}, data.runs.length > 1 ? run.name + ' ' : 'measured ', select);
}

function changeStep(r, step) {
  const count = data.runs[r].tracks.filter((track) => track.measured).length;
  state.step[r] = Math.min(Math.max(step, 0), count - 1);
  build();
}

function memorySelector() {
  const devices = Math.max(0, ...data.runs.flatMap((run) => run.tracks.map((track) => track.memory.length)));
  if (devices <= 8) return null;
  const names = [
    ['auto', 'the fullest device'], ['all', 'all devices'],
    ...Array.from({length: devices}, (_, d) => [String(d), 'device ' + d])
  ];
  const select = element(
      'select', {
        on: {
          change: () => {
            state.memoryOf = select.value;
            redraw();
          }
        }
      },
      names.map(([value, name]) => element('option', {value, selected: value === state.memoryOf}, name)));
  return element('label', {}, 'memory of ', select);
}

function controls() {
  const used = (test) => data.runs.some((run) => run.tracks.some(test));
  return element(
      'nav', {class: 'controls'}, button('\u2212', 'zoom out (\u2212)', () => zoom(2)),
      button('+', 'zoom in (+)', () => zoom(0.5)), button('fit', 'show all (0)', fit),
      ...data.runs.map(stepSelector),
      used((track) => track.events && track.run.devices <= 64) ? checkbox('transfers', 'transfers') : null,
      used((track) => track.memory.length > 0) ? checkbox('memory', 'memory') : null,
      data.runs.some((run) => run.shown.some(predictionOf)) ? checkbox('lateness', 'difference') : null,
      memorySelector(),
      element(
          'span', {class: 'hint'},
          'drag: move \u00b7 ctrl+wheel: zoom \u00b7 shift+drag: zoom to a part \u00b7 ? keys'));
}

const KEYS = [
  ['\u2190 \u2192', 'move'], ['+ \u2212, \u2191 \u2193', 'zoom'], ['0', 'show all'],
  [', .', 'action before, after'], ['[ ]', 'measured step before, after'],
  ['t m d', 'transfers, memory, lateness'], ['Esc', 'let go']
];

function keysHelp() {
  return element(
      'p', {id: 'keys', hidden: true},
      ...KEYS.flatMap(([key, text]) => [element('kbd', {}, key), ' ' + text + '  ']));
}

function legend() {
  const used =
      new Set(data.runs.flatMap((run) => (run.ops || []).flatMap((device) => [...new Set(device.kind)])));
  for (const run of data.runs)
    for (const track of run.tracks)
      for (const row of track.counts) row.forEach((n, k) => n > 0 && used.add(data.compute[k]));
  const shown = data.kinds.filter((_, k) => used.has(k))
                    .map(
                        (kind) => element(
                            'span', {class: 'key'}, swatch(kind.colour), element('b', {}, kind.word),
                            ' ' + (WORDS[kind.word] || '')));
  return element(
      'p', {class: 'keys'}, ...shown, element('span', {class: 'key'}, swatch('var(--row)'), 'idle'));
}

function categoryLegend() {
  if (categories.length === 0) return null;
  const keys = categories.map((name) => {
    const key = element(
        'button', {
          type: 'button',
          class: 'key',
          'aria-pressed': !isHidden(name) + '',
          on: {
            click: () => {
              if (!state.hidden.delete(name)) state.hidden.add(name);
              key.setAttribute('aria-pressed', !isHidden(name) + '');
              redraw();
            }
          }
        },
        swatch(categoryColour(name)), name);
    return key;
  });
  return element('p', {class: 'keys', title: 'press one to hide or show it'}, 'memory: ', ...keys);
}

function build() {
  const whole = !state.viewed || state.from <= 0 && state.to >= lastTime();
  chooseTracks();
  const none = state.panels.length === 0;
  const timeline = none ?
      null :
      element(
          'section', {class: 'part timeline'}, element('h2', {}, 'Timeline'), controls(), keysHelp(),
          legend(), categoryLegend(), ...state.panels.map((panel) => panel.box));
  document.getElementById('report').replaceChildren(
      ...[element('h1', {}, data.title), data.runs.length > 0 || data.bars.length === 0 ? overviewSection() : null,
          ...data.points.map(pointSection), ...data.bars.map(barSection), timeline, none ? null : idleSection(),
          differenceSection(), curvesSection(), heatSection(), tablesSection(), configurationSection()]
          .filter((part) => part));
  if (whole && !none) {
    state.to = lastTime();
    state.viewed = true;
  }
  if (!none) drawNow();
}

// The place in a lane of an op; of one of another lane, or of none, that from which a step in a direction
// reaches the next op.
function placeInLane(lane, events, op, direction) {
  if (op === undefined) return direction > 0 ? -1 : lane.ops.length;
  const place = lane.ops.indexOf(op);
  if (place >= 0) return place;
  const later = lane.ops.filter((other) => events.start[other] >= events.start[op]).length;
  return lane.ops.length - later - (direction > 0 ? 1 : 0);
}

// The compute op before or after the one shown, with its tip beside it.
function stepAction(direction) {
  const pointed = state.at && state.at.panel && state.at.panel.track.devices ? state.at : null;
  const panel = pointed ? pointed.panel : state.panels.find((p) => p.track.devices);
  if (!panel) return;
  const device = pointed && pointed.device !== undefined ? pointed.device : 0,
        events = panel.track.devices[device], lane = events.lanes.get(0);
  if (!lane) return;
  const now = placeInLane(lane, events, state.at ? state.at.op : undefined, direction);
  const op = lane.ops[Math.min(Math.max(now + direction, 0), lane.ops.length - 1)];
  const width = state.to - state.from, middle = (events.start[op] + events.end[op]) / 2;
  if (middle < state.from || middle > state.to) setView(middle - width / 2, middle + width / 2);
  drawNow();
  const canvas = panel.overlay.getBoundingClientRect(), box = boxOf(panel, device, op);
  showTip(
      {panel, device, op, text: explainOp(panel.track, device, op)}, canvas.left + (box.left + box.right) / 2,
      canvas.top + box.y + box.height);
}

function toggle(field) {
  const box = document.querySelector('[data-field=' + field + '] input');
  if (box) box.click();
}

const ACTIONS = {
  ArrowLeft: () => pan(-0.15),
  ArrowRight: () => pan(0.15),
  ArrowUp: () => zoom(0.7),
  ArrowDown: () => zoom(1 / 0.7),
  '+': () => zoom(0.5),
  '=': () => zoom(0.5),
  '-': () => zoom(2),
  0: fit,
  Home: fit,
  ',': () => stepAction(-1),
  '.': () => stepAction(1),
  '[': () => data.runs.forEach((_, r) => changeStep(r, state.step[r] - 1)),
  ']': () => data.runs.forEach((_, r) => changeStep(r, state.step[r] + 1)),
  t: () => toggle('transfers'),
  m: () => toggle('memory'),
  d: () => toggle('difference'),
  Escape: () => showTip(null),
  '?': () => {
    const keys = document.getElementById('keys');
    keys.hidden = !keys.hidden;
  },
};

document.addEventListener('keydown', (event) => {
  const act = ACTIONS[event.key], busy = /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName);
  const scrolls = /^Arrow(Up|Down)$|^Home$/.test(event.key) && !event.target.matches('canvas');
  if (!act || busy || scrolls || event.ctrlKey || event.metaKey || event.altKey || state.panels.length === 0)
    return;
  event.preventDefault();
  act();
});

function onPaper(paper) {
  state.paper = paper;
  document.documentElement.classList.toggle('paper', paper);
  if (state.panels.length > 0) drawNow();
}

window.addEventListener('resize', redraw);
window.addEventListener('beforeprint', () => onPaper(true));
window.addEventListener('afterprint', () => onPaper(false));
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
build();

// For the console and for tests: where an op is drawn, the times shown, how long the last drawing took.
window.penstock = {
  where: (panel, device, op) => boxOf(state.panels[panel], device, op),
  find: (panel, device, text) => state.panels[panel].track.run.ops[device].after.findIndex(
      (_, op) => token(state.panels[panel].track.run, device, op) === text),
  times: (panel, device, op) =>
      [state.panels[panel].track.devices[device].start[op],
       state.panels[panel].track.devices[device].end[op]],
  view: () => [state.from, state.to],
  zoomTo: setView,
  drawMilliseconds: () => state.drawMilliseconds,
};
