import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { LiveProcess } from './live-process.ts';

// What is known of each sandbox on this host, for the next life of this worker: one folder each, with what we wrote of it before it
// was made, and what the launcher wrote of its process. Ids only: tokens are derived anew.

const recordSchema = z.object({
  session: z.object({ namespace: z.string().min(1), tenant: z.string().min(1), session: z.string().min(1) }),
  sandboxId: z.string().regex(/^[0-9a-f]{12}$/),
  keeperProtocol: z.number().int(),
  createdAt: z.number(),
});
export type HostRecord = z.infer<typeof recordSchema>;

/** How a process ended, in the launcher's words. */
interface ProcessEnd {
  how: 'exited' | 'killed';
  /** Exit code, or signal. */
  number: number;
}

export interface RecordFolder {
  /** Written by the launcher, before the keeper starts and after it ended. */
  processPath: string;
  endedPath: string;
  write(record: HostRecord): Promise<void>;
  /** Undefined: never written whole, or not ours. */
  read(): Promise<HostRecord | undefined>;
  /** The keeper; undefined: it was never started. */
  process(): Promise<LiveProcess | undefined>;
  end(): Promise<ProcessEnd | undefined>;
  remove(): Promise<void>;
}

export interface Records {
  at(name: string): RecordFolder;
  names(): Promise<string[]>;
}

export async function openRecords(parent: string): Promise<Records> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  return {
    at: (name) => openRecord(join(parent, name)),
    names: () => readdir(parent),
  };
}

function openRecord(folder: string): RecordFolder {
  const processPath = join(folder, 'process');
  const endedPath = join(folder, 'ended');
  const recordPath = join(folder, 'record.json');
  return {
    processPath,
    endedPath,
    async write(record) {
      await mkdir(folder, { mode: 0o700 });
      await writeFile(`${recordPath}.new`, JSON.stringify(record), { mode: 0o600 });
      await rename(`${recordPath}.new`, recordPath);
    },
    async read() {
      return recordSchema.safeParse(parseJson(await readIfThere(recordPath))).data;
    },
    async process() {
      const [pid, started] = (await readIfThere(processPath)).split(' ');
      return pid === undefined || started === undefined ? undefined : { pid: Number(pid), started };
    },
    async end() {
      const told = /^(exited|killed) (\d+)$/m.exec(await readIfThere(endedPath));
      return told ? { how: told[1] as ProcessEnd['how'], number: Number(told[2]) } : undefined;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
