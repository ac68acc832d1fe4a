/** Formats a time: `0 ms`, `820 ms`, `1.24 s`, `12.4 s`, `3 min 20 s` or `2 h 05 min`. */
export function formatMs(ms: number): string {
  if (ms < 999.5) return `${ms < 10 ? trim(ms.toFixed(1)) : Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1_000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${pad(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  return `${formatCount(Math.floor(minutes / 60))} h ${pad(minutes % 60)} min`;
}

/** Formats a place on an axis, or the edge of a bin: `2 s` rather than `2.00 s`. */
export function formatEdgeMs(ms: number): string {
  if (ms < 1_000) return `${trim(String(Number(ms.toPrecision(3))))} ms`;
  if (ms < 600_000) return `${Number((ms / 1_000).toPrecision(3))} s`;
  return ms < 7_200_000
    ? `${Number((ms / 60_000).toPrecision(3))} min`
    : `${Number((ms / 3_600_000).toPrecision(3))} h`;
}

/** Formats a size: `512 B`, `1.5 kB` or `20 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const amount = bytes / 1_000 ** step;
  return `${step === 0 || amount >= 100 ? Math.round(amount) : trim(amount.toFixed(1))} ${units[step]}`;
}

/** Formats a number with commas between thousands: `10,000`. */
export const formatCount = (count: number) => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');

/** Formats a share of 0 to 1. It is `100 %` or `0 %` only when it is exactly that. */
export function formatShare(share: number): string {
  if (share === 0 || share === 1) return `${share * 100} %`;
  return `${Math.min(99.9, Math.max(0.1, share * 100)).toFixed(1)} %`;
}

/** Formats a score or a factor with at most three digits behind the point. */
export const formatNumber = (value: number) => trim(value.toFixed(3));

const trim = (text: string) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
const pad = (value: number) => String(value).padStart(2, '0');
