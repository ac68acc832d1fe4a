import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import type { LiveProcess } from './live-process.ts';

// Record of each sandbox on this host, for the worker's next start: a directory with data that the worker wrote before
// it created the sandbox, and the launcher's data about the process. It has ids only; tokens are derived again.

const recordSchema = z.object({
  session: z.object({ namespace: z.string().min(1), tenant: z.string().min(1), session: z.string().min(1) }),
  sandboxId: z.string().regex(/^[0-9a-f]{12}$/),
  keeperProtocol: z.number().int(),
  createdAt: z.number(),
  /** Id of the session's first sandbox, if this one is the second. */
  beside: z.string().optional(),
});
export type HostRecord = z.infer<typeof recordSchema>;

interface ProcessEnd {
  how: 'exited' | 'killed';
  /** Exit code, or signal. */
  number: number;
}

export interface RecordDirectory {
  /** File that the launcher writes before the keeper starts and after it ended. */
  processPath: string;
  endedPath: string;
  write(record: HostRecord): Promise<void>;
  /** Returns the record, or undefined when it is missing, incomplete or invalid. */
  read(): Promise<HostRecord | undefined>;
  /** Returns the keeper's process, or undefined when it was never started. */
  process(): Promise<LiveProcess | undefined>;
  end(): Promise<ProcessEnd | undefined>;
  remove(): Promise<void>;
}

export interface Records {
  at(name: string): RecordDirectory;
  names(): Promise<string[]>;
}

export async function openRecords(parent: string): Promise<Records> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  return {
    at: (name) => openRecord(join(parent, name)),
    names: () => readdir(parent),
  };
}

function openRecord(directory: string): RecordDirectory {
  const processPath = join(directory, 'process');
  const endedPath = join(directory, 'ended');
  const recordPath = join(directory, 'record.json');
  return {
    processPath,
    endedPath,
    async write(record) {
      await mkdir(directory, { mode: 0o700 });
      await writeFile(`${recordPath}.new`, JSON.stringify(record), { mode: 0o600 });
      await rename(`${recordPath}.new`, recordPath);
    },
    async read() {
      return recordSchema.safeParse(tryJson(await readIfThere(recordPath))).data;
    },
    async process() {
      const [pid, started] = (await readIfThere(processPath)).split(' ');
      return pid === undefined || started === undefined ? undefined : { pid: Number(pid), started };
    },
    async end() {
      const told = /^(exited|killed) (\d+)$/m.exec(await readIfThere(endedPath));
      return told ? { how: told[1] as ProcessEnd['how'], number: Number(told[2]) } : undefined;
    },
    // The launcher may still be writing how its program ended.
    remove: () => rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }),
  };
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
