import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Age of the last write below which a log may be in use. */
const IN_USE_MS = 300_000;

/** Removes logs by age, then the oldest until the rest is within the quota. */
export async function sweepLogs(
  directory: string,
  { retentionMs, quotaBytes }: { retentionMs: number; quotaBytes: number },
  now = Date.now(),
): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const logs = await Promise.all(names.map((name) => measure(join(directory, name))));
  let bytes = logs.reduce((sum, log) => sum + log.bytes, 0);
  for (const log of logs.sort((a, b) => a.writtenAt - b.writtenAt)) {
    const age = now - log.writtenAt;
    if (age < IN_USE_MS || (age < retentionMs && bytes <= quotaBytes)) continue;
    await rm(log.path, { recursive: true, force: true });
    bytes -= log.bytes;
  }
}

/** Measures a log. Its time is the latest of its directory (last new segment) and its segments (last write). */
async function measure(path: string): Promise<{ path: string; bytes: number; writtenAt: number }> {
  const names = await readdir(path).catch(() => []);
  const own = await stat(path).catch(() => undefined);
  const segments = await Promise.all(names.map((name) => stat(join(path, name)).catch(() => undefined)));
  const known = segments.filter((segment) => segment !== undefined);
  return {
    path,
    bytes: known.reduce((sum, { size }) => sum + size, 0),
    writtenAt: Math.max(own?.mtimeMs ?? 0, ...known.map(({ mtimeMs }) => mtimeMs)),
  };
}
