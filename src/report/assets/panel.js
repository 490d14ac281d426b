// SPDX-License-Identifier: Apache-2.0
// One timeline on the page: a canvas for the drawing, one above it for what the pointer is on.

function inkOf() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return {text: of('--ink'), faint: of('--faint'), row: of('--row'), grid: of('--grid'), mark: of('--mark')};
}

function createPanel(track) {
  const base = element('canvas', {class: 'base'});
  const overlay = element('canvas', {
    class: 'overlay',
    tabindex: '0',
    role: 'img',
    'aria-label': 'timeline of ' + track.run.name + ', ' + track.label
  });
  const many = data.runs.length > 1 ? track.run.name + ': ' : '';
  const step = printSeconds(track.makespan);
  const caption = element(
      'h3', {}, many + track.label,
      element(
          'span', {class: 'aside'}, step,
          track.shares ? ' \u00b7 shares of time: too many actions to draw each' : ''));
  const panel = {
    track,
    base,
    overlay,
    box: element('section', {class: 'panel'}, caption, element('div', {class: 'stack'}, base, overlay))
  };
  listen(panel);
  return panel;
}

function sizeCanvas(canvas, width, height) {
  const scale = Math.max(1, state.paper ? 2 : window.devicePixelRatio || 1);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  const g = canvas.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  return g;
}

function layout(panel) {
  const width = state.width;
  panel.narrow = width < 600;
  panel.left = labelWidth(state.panels, panel.narrow);
  panel.right = width - 10;
  panel.regions = [];
  panel.x = (time) => panel.left + (time - state.from) / (state.to - state.from) * (panel.right - panel.left);
  panel.time = (x) => state.from + (x - panel.left) / (panel.right - panel.left) * (state.to - state.from);
  panel.height = layoutMemory(panel, layoutLag(panel, layoutRows(panel, AXIS))) + 2;
  panel.width = width;
}

function drawPanel(panel) {
  layout(panel);
  panel.ink = inkOf();
  const g = sizeCanvas(panel.base, panel.width, panel.height);
  drawAxis(panel, g);
  drawRows(panel, g);
  const most = Math.max(...state.panels.map((other) => other.shownPeak));
  for (const region of panel.regions) {
    if (region.type === 'memory') drawMemory(panel, g, region, most);
    if (region.type === 'lag') drawLag(panel, g, region);
  }
  drawOverlay(panel);
}

function rowOf(panel, device) {
  return panel.regions.find((region) => region.type === 'row' && region.device === device);
}

// Where an op is drawn: { left, right, y, height }.
function boxOf(panel, d, op) {
  const row = rowOf(panel, d), events = panel.track.devices[d];
  const lane = data.kinds[panel.track.run.ops[d].kind[op]].lane;
  const thin = row.lanes.find((entry) => entry.lane === lane);
  const left = Math.max(panel.x(shownStart(panel.track, d, op)), panel.left),
        right = Math.min(panel.x(events.end[op]), panel.right);
  return {left, right: Math.max(right, left), y: thin ? thin.y : row.y, height: thin ? thin.height : row.bar};
}

function outline(panel, g, d, op, dash) {
  const box = boxOf(panel, d, op);
  g.setLineDash(dash);
  g.strokeRect(box.left - 0.5, box.y - 0.5, Math.max(box.right - box.left, 2) + 0.5, box.height + 1);
  g.setLineDash([]);
  return box;
}

function drawOverlay(panel) {
  const g = sizeCanvas(panel.overlay, panel.width, panel.height), at = state.at;
  if (!at) return;
  g.strokeStyle = g.fillStyle = panel.ink.mark;
  if (at.time !== undefined && at.time >= state.from && at.time <= state.to)
    g.fillRect(panel.x(at.time), 12, 1, panel.height - 12);
  if (at.op === undefined || at.panel.track.run !== panel.track.run || !panel.track.devices) return;
  g.lineWidth = 2;
  const box = outline(panel, g, at.device, at.op, []);
  const wait = panel === at.panel ? waitOf(panel.track, at.device, at.op) : null;
  if (wait && wait.op >= 0) drawArrow(g, outline(panel, g, wait.device, wait.op, [4, 3]), box);
}

// From the end of what was waited for to the start of what waited.
function drawArrow(g, from, to) {
  const [x0, y0, x1, y1] = [from.right, from.y + from.height / 2, to.left, to.y + to.height / 2];
  const angle = Math.atan2(y1 - y0, x1 - x0);
  g.lineWidth = 1.5;
  g.beginPath();
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
  for (const turn of [2.6, -2.6]) {
    g.moveTo(x1, y1);
    g.lineTo(x1 + 8 * Math.cos(angle + turn), y1 + 8 * Math.sin(angle + turn));
  }
  g.stroke();
}

// What is under a point of the canvas, and what to say of it.
function find(panel, x, y) {
  const time = panel.time(x);
  const region = panel.regions.find((r) => y >= r.y - GAP / 2 && y < r.y + r.height + GAP / 2);
  if (region && region.type === 'row' && x < panel.left - 2 && panel.track.run.groups.length > 0)
    return {panel, device: region.device, text: explainGroups(panel.track.run, region.device)};
  if (!region || x < panel.left - 2 || x > panel.right + 2 || time < 0) return null;
  const at = {panel, device: region.device, time};
  if (region.type === 'lag') return {...at, text: explainLag(panel, time)};
  if (time > panel.track.makespan * 1.0001) return null;
  if (region.type === 'memory') return {...at, text: explainMemory(panel.track, region.device, time)};
  if (panel.track.shares)
    return {
      ...at,
      text: explainShare(
          panel.track, region.device,
          Math.min(panel.track.slots - 1, Math.floor(time / panel.track.makespan * panel.track.slots)))
    };
  const op = opAt(panel, region, x, y);
  if (op >= 0) return {panel, device: region.device, op, text: explainOp(panel.track, region.device, op)};
  return y <= region.y + region.bar ? {...at, text: explainGap(panel.track, region.device, time)} : null;
}

function showTip(at, clientX, clientY) {
  const tip = document.getElementById('tip');
  state.at = at;
  tip.hidden = !at;
  if (at) {
    const rows = at.text.lines.map(
        ([label, text]) => label === '' ?
            element('tr', {}, element('td', {colspan: '2'}, text)) :
            element('tr', {}, element('th', {}, label), element('td', {}, text)));
    tip.replaceChildren(element('b', {}, at.text.title), element('table', {}, ...rows));
    const box = tip.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    tip.style.left = Math.max(4, Math.min(clientX + 14, wide - box.width - 6)) + 'px';
    tip.style.top = (clientY + 18 + box.height > window.innerHeight ? Math.max(4, clientY - box.height - 12) :
                                                                      clientY + 18) +
        'px';
  }
  for (const panel of state.panels) drawOverlay(panel);
}

function listen(panel) {
  const canvas = panel.overlay;
  let dragged = null;
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('pointerdown', (event) => {
    const [x] = point(event);
    dragged = {x, from: state.from, to: state.to, time: panel.time(x), range: event.shiftKey};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = point(event);
    if (!dragged) return showTip(find(panel, x, y), event.clientX, event.clientY);
    if (dragged.range) return markRange(panel, dragged.x, x);
    const shift = (dragged.x - x) / (panel.right - panel.left) * (dragged.to - dragged.from);
    if (Math.abs(dragged.x - x) > 2) setView(dragged.from + shift, dragged.to + shift);
  });
  canvas.addEventListener('pointerup', (event) => {
    const [x] = point(event);
    if (dragged && dragged.range && Math.abs(x - dragged.x) > 4)
      setView(Math.min(dragged.time, panel.time(x)), Math.max(dragged.time, panel.time(x)));
    dragged = null;
  });
  canvas.addEventListener('pointercancel', () => {
    dragged = null;
  });
  canvas.addEventListener('pointerleave', () => {
    if (!dragged) showTip(null);
  });
  canvas.addEventListener('dblclick', (event) => zoom(0.5, panel.time(point(event)[0])));
  canvas.addEventListener('wheel', (event) => {
    const sideways = event.shiftKey                     ? event.deltaY || event.deltaX :
        Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX :
                                                          0;
    if (!event.ctrlKey && !event.metaKey && !event.altKey && sideways === 0) return;
    event.preventDefault();
    if (sideways !== 0 && !event.ctrlKey)
      pan(sideways / (panel.right - panel.left));
    else
      zoom(Math.exp(event.deltaY * 0.002), panel.time(point(event)[0]));
  }, {passive: false});
}

function markRange(panel, from, to) {
  drawOverlay(panel);
  const g = panel.overlay.getContext('2d');
  g.globalAlpha = 0.2;
  g.fillStyle = panel.ink.mark;
  g.fillRect(Math.min(from, to), AXIS, Math.abs(to - from), panel.height - AXIS);
  g.globalAlpha = 1;
}
