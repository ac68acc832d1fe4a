import { parseDurationText, type RunningPull, ShellfleetError } from '@shellfleet/protocol';
import { InvalidArgumentError } from 'commander';

/** Parses a duration: `30s`, `5m`, `1h` or a number of milliseconds. */
export function parseDuration(text: string): number {
  const durationMs = parseDurationText(text);
  if (durationMs === undefined) throw new InvalidArgumentError('Give a time such as 500ms, 30s or 5m.');
  return durationMs;
}

/** Parses `10m`, the time before now, or a time of ISO 8601. Throws COMMAND_INVALID. */
export function parseTime(text: string): Date {
  const agoMs = parseDurationText(text);
  const time = new Date(agoMs === undefined ? text : Date.now() - agoMs);
  if (!Number.isNaN(+time)) return time;
  const message = 'must be a duration such as 10m, or a time such as 2026-11-27T09:00:00Z';
  throw new ShellfleetError('COMMAND_INVALID', `The time ${message}.`, { issues: [{ path: 'since', message }] });
}

/** Formats a duration: `10 min`, `90 s` or `500 ms`. */
export function describeDuration(durationMs: number): string {
  if (durationMs >= 120_000 && durationMs % 60_000 === 0) return `${durationMs / 60_000} min`;
  return durationMs >= 1_000 ? `${durationMs / 1_000} s` : `${durationMs} ms`;
}

/** Formats a measured time: `3 ms`, `1.20 s` or `2 min 05 s`. */
export function describeMs(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 10) / 100).toFixed(2)} s`;
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
}

/** Parses a whole number from 1. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Give a whole number from 1.');
  return Number(text);
}

const SIZE_BYTES: Record<string, number> = { k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** Parses a size: `64k`, `1g` or a number of bytes. */
export function parseSize(text: string): number {
  const [, amount, unit] = /^(\d{1,15})([kmg])?$/i.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError('Give a size such as 4096, 64k or 1g.');
  return Number(amount) * (SIZE_BYTES[unit?.toLowerCase() ?? ''] ?? 1);
}

/** Formats a size: `618.2 MB` or `512 bytes`. */
export function describeSize(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return step === 0 ? `${bytes} bytes` : `${(bytes / 1_000 ** step).toFixed(1)} ${units[step]}`;
}

/** Formats the progress of a pull: `python:3.13 47 %`. A pull that waits for its turn has no bytes. */
export function describePull({
  image,
  doneBytes = 0,
  totalBytes = 0,
}: Partial<RunningPull> & { image: string }): string {
  return totalBytes === 0 ? `${image} waits` : `${image} ${Math.floor((100 * doneBytes) / totalBytes)} %`;
}
