import { open, readFile, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { ShellfleetError, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { toBatchFileError } from '../batch/batch-file-error.ts';

const holderSchema = z.object({ machine: z.string(), pid: z.number().int().positive() });
type Holder = z.infer<typeof holderSchema>;

/**
 * Makes `<path>.lock`, and resolves to a function that removes it. That of a process of this machine that is dead is
 * replaced. Rejects with COMMAND_INVALID while another one is there.
 */
export async function lockFile(path: string): Promise<() => Promise<void>> {
  const lock = `${path}.lock`;
  const own: Holder = { machine: hostname(), pid: process.pid };
  const make = async () => {
    await using file = await open(lock, 'wx');
    await file.writeFile(JSON.stringify(own));
  };
  try {
    await make().catch(async (cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw cause;
      await removeStale(path, lock);
      await make();
    });
  } catch (cause) {
    throw (cause as NodeJS.ErrnoException).code === 'EEXIST' ? inUse(path, lock) : toBatchFileError(lock, cause);
  }
  return () => rm(lock, { force: true });
}

async function removeStale(path: string, lock: string): Promise<void> {
  const holder = holderSchema.safeParse(tryJson(await readFile(lock, 'utf8').catch(() => ''))).data;
  if (holder?.machine !== hostname() || isAlive(holder.pid)) throw inUse(path, lock, holder);
  await rm(lock, { force: true });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function inUse(path: string, lock: string, holder?: Holder): ShellfleetError {
  const who = holder === undefined ? 'another process' : `process ${holder.pid} on ${holder.machine}`;
  return new ShellfleetError('COMMAND_INVALID', `${path} is written by ${who}; if not, remove ${lock}.`, { path });
}
