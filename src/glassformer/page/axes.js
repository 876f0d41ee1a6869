// The axes of a plot: scales, linear or logarithmic, their ticks, names in the place of numbers.

import { label } from "./svg.js";

export const INSET = { right: 14, top: 12, bottom: 26 };
export const LETTER = 7.2; // the width of a letter of a tick, in pixels; a Chinese sign counts as two
const MANY = 12; // names along an axis of which some may be left out

/** Whether a value can be drawn. @param {number | null} value @param {boolean} log @returns {value is number} */
export const drawable = (value, log) => value !== null && (value > 0 || !log);

/**
 * A value's place, and the ticks: round numbers, or on a logarithmic axis those few that were met.
 * @param {number[]} values
 * @param {boolean} log
 * @param {number} from
 * @param {number} to
 * @param {{zero?: boolean, met?: number[], room?: number}} [options]   met: the values there are; room: beyond them
 */
export function scaleOf(values, log, from, to, { zero = false, met, room = 0 } = {}) {
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [log ? 1 : 0, log ? 10 : 1];
  const based = zero && !log;
  if (based) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) {
    [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) / 10 || 1), high + (Math.abs(high) / 10 || 1)];
  }
  /** @param {number} value */
  const f = (value) => (log ? Math.log10(value) : value);
  const spare = (f(high) - f(low)) * room;
  const a = f(low) - (based && low === 0 ? 0 : spare);
  const b = f(high) + (based && high === 0 ? 0 : spare);
  /** @param {number} value */
  const place = (value) => from + ((f(value) - a) / (b - a)) * (to - from);
  const most = Math.max(2, Math.floor(Math.abs(to - from) / (from > to ? 44 : 64)));
  return { place, ticks: log ? logTicks(a, b, most, met) : roundTicks(a, b, most, met?.every(Number.isInteger)) };
}

/**
 * Round numbers; whole ones where only such were met: there is no layer 1.5.
 * @param {number} a
 * @param {number} b
 * @param {number} most
 */
function roundTicks(a, b, most, whole = false) {
  const rough = (b - a) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factors = whole && power < 10 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  const step = Math.max(whole ? 1 : 0, power * (factors.find((one) => one * power >= rough) ?? 10));
  const ticks = [];
  for (let n = Math.ceil(a / step - 1e-9); n * step <= b + 1e-9 * step; n++) ticks.push(n * step);
  return ticks;
}

/** @param {number} a @param {number} b @param {number} most @param {number[]} [met] */
function logTicks(a, b, most, met = []) {
  const apart = met.every((one, i) => i === 0 || one / met[i - 1] > 1.4);
  if (met.length > 1 && met.length <= most && apart) return met;
  const each = Math.ceil((b - a) / most) || 1;
  const ticks = [];
  for (let n = Math.floor(a); n <= Math.ceil(b); n++) {
    for (const one of b - a < 2 ? [1, 2, 5] : [1]) {
      const at = Math.log10(one) + n;
      if (n % each === 0 && at >= a - 1e-9 && at <= b + 1e-9) ticks.push(one * 10 ** n);
    }
  }
  return ticks;
}

/** The width of a text in letters. @param {string} text */
export const lettersOf = (text) => [...text].reduce((sum, one) => sum + (/[\u2e80-\u{10ffff}]/u.test(one) ? 2 : 1), 0);

/**
 * Names below the plot: a few slanted where they would touch, of many some left out.
 * @param {string[]} list
 * @param {(i: number) => number} x
 * @param {number} room   of each
 */
export function namesBelow(list, x, room) {
  const longest = Math.max(...list.map(lettersOf)) * LETTER + 8;
  const every = list.length > MANY ? Math.ceil(longest / room) : 1;
  const slanted = longest > room * every;
  const tall = slanted ? Math.min(120, 14 + 0.6 * longest) : INSET.bottom;
  /** @param {number} y */
  const draw = (y) =>
    list.map((name, i) => {
      const transform = slanted ? `rotate(-35 ${x(i)} ${y + 12})` : null;
      return i % every === 0 && label([x(i), y + 16], name, { class: slanted ? "tick end" : "tick", transform });
    });
  return { tall, draw };
}
