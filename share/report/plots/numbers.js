// Numbers, times and dates as people read them. What is not known is a dash, never 0.

const unknown = "–";
const number = (value, digits = 4) => {
  if (value === null || value === undefined) return unknown;
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 1);
  return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
};
const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : (100 * share).toFixed(share < 0.1 ? 1 : 0) + " %");
const two = (value) => String(value).padStart(2, "0");
function duration(seconds) {
  if (seconds === null || seconds === undefined) return unknown;
  if (seconds === 0) return "0 s";
  if (seconds < 1) return Math.round(seconds * 1000) + " ms";
  if (seconds < 60) return Number(seconds.toPrecision(3)) + " s";
  const whole = Math.round(seconds),
    minutes = Math.floor(whole / 60),
    hours = Math.floor(minutes / 60);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
  return hours > 0 ? `${hours} h ${two(minutes % 60)} min` : `${minutes} min ${two(whole % 60)} s`;
}
const date = (seconds) =>
  seconds === null || seconds === undefined ? unknown : new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
const clock = (seconds, step) => {
  const text = new Date(seconds * 1000).toISOString();
  return step >= 86400
    ? text.slice(5, 10)
    : step >= 60
      ? (step >= 21600 ? text.slice(5, 10) + " " : "") + text.slice(11, 16)
      : text.slice(11, 19);
};
