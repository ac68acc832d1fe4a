import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const BUSY_TRIES = 200;
const BUSY_STEP_MS = 10;
export const CPU_PERIOD_MICROS = 100_000;

/** Writes a value. Rejects when the kernel has no such file, and never creates it. */
export async function setValue(directory: string, file: string, value: number | string): Promise<void> {
  await writeFile(`${directory}/${file}`, String(value), { flag: 'r+' });
}

/** Writes a value to a file that some kernels lack. */
export async function setValueIfThere(directory: string, file: string, value: number | string): Promise<void> {
  if (existsSync(`${directory}/${file}`)) await setValue(directory, file, value);
}

/** Reads a counter in a file with a name and a number in each line. A missing one is 0. */
export async function readCounter(path: string, name: string): Promise<number> {
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await readFile(path, 'utf8'))?.[1] ?? 0);
}

export async function makeGroup(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
}

/** Removes the group, with retries: the kernel keeps it busy for a moment after its last process has ended. */
export async function removeGroup(directory: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const code = await tryRemove(directory);
    if (code === undefined || code === 'ENOENT') return;
    if (code !== 'EBUSY' || attempt === BUSY_TRIES) throw new Error(`The control group ${directory} stays: ${code}`);
    await sleep(BUSY_STEP_MS);
  }
}

/** Removes the directory and those above it up to `top`, as long as they are empty. */
export async function removeEmptyParents(directory: string, top: string): Promise<void> {
  for (let path = directory; path.length > top.length; path = dirname(path)) {
    if ((await tryRemove(path)) !== undefined) return;
  }
}

export async function listGroups(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

async function tryRemove(directory: string): Promise<string | undefined> {
  return rmdir(directory).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
  );
}
