// Numbers as they are printed: what is shown can be read back, digit for digit.

export const DIGITS = 4;
const MINUS = "\u2212";

/**
 * `value` to `digits` significant digits, in plain notation where that is short.
 * @param {number | null | undefined} value @param {number} [digits]
 */
export function show(value, digits = DIGITS) {
  if (value === null || value === undefined) return "\u2014"; // a broken model's, which JSON cannot hold
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : `${MINUS}\u221e`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (size >= 1e-4 && size < 1e7) {
    const before = Math.floor(Math.log10(Number(size.toPrecision(digits)))) + 1;
    text = value.toFixed(Math.max(0, digits - before));
  } else {
    text = value.toExponential(digits - 1);
  }
  return text.replaceAll("-", MINUS);
}

/** `value` with so many digits after the point. @param {number} value @param {number} decimals */
export function fixed(value, decimals) {
  const text = value.toFixed(decimals);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", MINUS);
}

/** What one more in the last digit of a printed number is worth. @param {string} text */
export function unit(text) {
  const [mantissa, exponent] = text.replaceAll(MINUS, "-").split("e");
  return 10 ** (Number(exponent ?? 0) - (mantissa.split(".")[1]?.length ?? 0));
}

/** The number that a printed one stands for. @param {string} text */
export function read(text) {
  return Number(text.replaceAll(MINUS, "-").replace("\u221e", "Infinity"));
}

/** A whole number with thin spaces between thousands. @param {number} value */
export function whole(value) {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** A share in percent, to one decimal. @param {number} value */
export function percent(value) {
  if (value > 0.9995 && value < 1) return ">99.9 %";
  if (value > 0 && value < 0.0005) return "<0.1 %";
  return `${(100 * value).toFixed(1)} %`;
}

/** `value` in as few signs as it needs: a tick of an axis, a limit. @param {number} value @param {number} [digits] */
export function brief(value, digits = 6) {
  const [mantissa, exponent] = show(value, digits).split("e");
  const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
  return exponent === undefined ? short : `${short}e${exponent.replace("+", "")}`;
}
