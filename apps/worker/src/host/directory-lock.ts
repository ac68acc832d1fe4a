import { spawn } from 'node:child_process';
import { type FileHandle, open, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { ShellfleetError } from '@shellfleet/protocol';

export interface DirectoryLock {
  release(): Promise<void>;
}

const TAKEN_EXIT_CODE = 10;
/**
 * Time to wait for a process that was killed a moment ago, or its flock(1), to release the lock. It takes milliseconds.
 */
const WAIT_SECONDS = 2;

/**
 * Locks a directory until release or death of this process. flock(1) locks a descriptor that it inherits. The lock
 * belongs to the open file, so the lock outlives flock(1).
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const file = await open(join(directory, 'lock'), 'a', 0o600);
  const outcome = await flock(file);
  if (outcome === 'locked') return { release: () => file.close() };
  await file.close();
  if (outcome === 'taken') throw taken(directory);
  return bindPort(directory);
}

function flock(file: FileHandle): Promise<'locked' | 'taken' | 'missing'> {
  return new Promise((resolve, reject) => {
    const args = ['--exclusive', '--timeout', `${WAIT_SECONDS}`, '--conflict-exit-code', `${TAKEN_EXIT_CODE}`, '3'];
    const child = spawn('flock', args, { stdio: ['ignore', 'ignore', 'ignore', file.fd] });
    child.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? resolve('missing') : reject(error),
    );
    child.once('exit', (code) => {
      if (code === 0) resolve('locked');
      else if (code === TAKEN_EXIT_CODE) resolve('taken');
      else resolve('missing');
    });
  });
}

/** Locks without flock(1): listens on a loopback port that the directory records. The kernel releases the port too. */
async function bindPort(directory: string): Promise<DirectoryLock> {
  const path = join(directory, 'lock-port');
  const known = Number(await readFile(path, 'utf8').catch(() => '0'));
  const server = createServer((socket) => socket.destroy());
  await listen(server, Number.isInteger(known) ? known : 0).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? taken(directory) : error;
  });
  server.unref();
  const address = server.address();
  if (typeof address === 'object' && address) await writeFile(path, String(address.port), { mode: 0o600 });
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, resolve);
  });
}

function taken(directory: string): ShellfleetError {
  return new ShellfleetError(
    'HOST_ID_TAKEN',
    `Another worker of this machine has the state directory ${directory}. Stop it, or give this one its own SHELLFLEET_HOST_ID.`,
    { directory },
  );
}
