// SPDX-License-Identifier: Apache-2.0
// Numbers and names as a person reads them, and page elements that show text as text.

const WORDS = {
  F: 'forward',
  B: 'backward',
  I: 'backward for the input',
  W: 'backward for the weights',
  SEND_F: 'sends activations',
  RECV_F: 'receives activations',
  SEND_B: 'sends gradients',
  RECV_B: 'receives gradients',
  OFFLOAD: 'copies a record out',
  RELOAD: 'copies a record back',
  REDUCE_GRAD: 'sums gradients of replicas',
  GATHER_WEIGHTS: 'gathers weights from replicas',
  RELEASE_WEIGHTS: 'frees gathered weights',
  STEP: 'optimizer step',
  LOSS: 'output layer and loss, on all devices',
  SEND_EMBED: 'sends embedded tokens',
  RECV_EMBED: 'receives embedded tokens',
  SEND_EMBED_GRAD: 'sends gradients of embedded tokens',
  RECV_EMBED_GRAD: 'receives gradients of embedded tokens',
  EMBED_GRAD: 'gradient of the embedding',
};
// Rows are devices unless the run names them.
const rowName = (run, row) => run.rows.length > 0 ? run.rows[row] : 'device ' + row;

const LANES = ['compute', 'send', 'receive', 'copy out', 'copy in', 'collective'];

function significant(value, digits) {
  if (value === 0) return '0';
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)) + 1e-9));
  return value.toFixed(Math.min(places, 12));
}

function printSeconds(exact, digits = 4) {
  const t = Number(exact.toPrecision(digits)), size = Math.abs(t);
  if (size < 1e-10) return '0 s';  // what sums of rounded times leave
  if (size < 1e-3) return significant(t * 1e6, digits) + ' \u00b5s';
  if (size < 1) return significant(t * 1e3, digits) + ' ms';
  return significant(t, digits) + ' s';
}

function printBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes, unit = 0;
  for (; Math.abs(value) >= 1023.5 && unit + 1 < units.length; ++unit) value /= 1024;
  return (unit === 0 ? String(value) : significant(value, 3)) + ' ' + units[unit];
}

function printNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e12 || (size > 0 && size < 1e-3)) return value.toExponential(2);
  const [suffix, scale] = scaleOf(size * 1.0005);
  return scale > 1 ? significant(value / scale, 3) + suffix : String(Number(value.toPrecision(4)));
}

const scaleOf = (size) =>
    size >= 1e9 ? [' G', 1e9] : size >= 1e6 ? [' M', 1e6] : size >= 1e4 ? [' K', 1e3] : ['', 1];

const printShare = (share) => (100 * share).toFixed(1) + ' %';
const signed = (text, value) => (value > 0 ? '+' : '') + text;
const signedPercent = (part, whole) =>
    signed((100 * part / whole).toFixed(1).replace('-0.0', '0.0'), part) + ' %';

// "3F2.1" as in schedules; in a bar only "2.1".
function keyText(run, device, op) {
  return device.microBatch[op] + (run.sliced ? '.' + device.slice[op] : '');
}

function token(run, d, op) {
  const device = run.ops[d], kind = data.kinds[device.kind[op]];
  if (kind.key === 'none') return kind.word;
  return device.stage[op] + kind.word + (kind.key === 'full' ? keyText(run, device, op) : '');
}

// Math.min and Math.max take their values as arguments, of which a browser allows about 125,000.
const leastOf = (values) => values.reduce((least, value) => Math.min(least, value), Infinity);
const greatestOf = (values) => values.reduce((greatest, value) => Math.max(greatest, value), -Infinity);

// element("td", { class: "number" }, "text", childElement): strings become text nodes, never markup. An array of children
// may be longer than arguments may be.
function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on')
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value !== undefined && value !== false)
      node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined) node.append(child);
  return node;
}

const swatch = (colour) => {
  const square = element('span', {class: 'swatch'});
  square.style.background = colour;
  return square;
};

// Round positions of an axis: about `wanted` of them, 1, 2 or 5 times a power of ten apart, and at least `least`.
function axisTicks(from, to, wanted, least = 0) {
  const rough = Math.max((to - from) / Math.max(wanted, 1), least);
  if (!(rough > 0) || !isFinite(rough)) return {step: 1, values: [from]};
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((m) => m * power >= rough * 0.999) || 10);
  const values = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) values.push(i * step);
  return {step, values};
}

const decimalsOf = (step) => Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 9);

// One unit for a whole axis, with as many decimals as its steps need.
function axisSeconds(value, step, greatest) {
  const [unit, scale] = greatest < 1e-3 ? ['\u00b5s', 1e6] : greatest < 1 ? ['ms', 1e3] : ['s', 1];
  return (value * scale).toFixed(decimalsOf(step * scale)) + ' ' + unit;
}

function axisNumber(value, step, greatest) {
  if (value === 0) return '0';
  if (greatest >= 1e12 || greatest < 1e-3) {
    const digits = Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9);
    return value.toExponential(Math.min(Math.max(digits, 0), 9));
  }
  const [suffix, scale] = scaleOf(greatest);
  return (value / scale).toFixed(decimalsOf(step / scale)) + suffix;
}
