// The keeper's C tries addresses of this machine.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MOST_PROBES } from './examination.ts';

const run = promisify(execFile);
const library = join(import.meta.dirname, '..');
let directory: string;
let server: Server;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-probes-'));
  const sources = [join(library, 'fuzz/try-probes.c'), join(library, 'src/probes.c')];
  const sanitizers = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
  const flags = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', ...sanitizers];
  await run('cc', [...flags, '-o', join(directory, 'try-probes'), ...sources]);
  server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
}, 30_000);
afterAll(async () => {
  server.close();
  await rm(directory, { recursive: true, force: true });
});

const portOf = (listening: Server) => (listening.address() as AddressInfo).port;

async function tryLines(lines: readonly string[]): Promise<string[]> {
  const { stdout } = await run(join(directory, 'try-probes'), [lines.map((line) => `${line}\n`).join('')]);
  return stdout.split('\n').slice(0, -1);
}

/** Starts a process whose port accepts nothing, and fills the queue of connections there. */
async function startDeafServer(): Promise<{ port: number; process: ChildProcess; sockets: Socket[] }> {
  const script = `const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port) + '\\n');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  const port = Number(String(line));
  const sockets = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await once(sockets[0] as Socket, 'connect');
  return { port, process: child, sockets };
}

describe('addresses that should be out of reach', () => {
  test('are tried all at once, each with its result', async () => {
    const deaf = await startDeafServer();
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const refusing = portOf(closed);
    await new Promise((resolve) => closed.close(resolve));
    try {
      const began = performance.now();
      const results = await tryLines([
        `probe 127.0.0.1:${portOf(server)}`,
        `probe 127.0.0.1:${refusing}`,
        `probe 127.0.0.1:${deaf.port}`,
        'probe [2001:db8::1]:443',
        ...Array.from({ length: 5 }, () => `probe 127.0.0.1:${deaf.port}`),
      ]);
      expect(results.slice(0, 4)).toEqual([
        `probe 127.0.0.1:${portOf(server)} connected`,
        `probe 127.0.0.1:${refusing} refused`,
        `probe 127.0.0.1:${deaf.port} timeout`,
        expect.stringMatching(/^probe \[2001:db8::1\]:443 (?:unreachable|timeout)$/),
      ]);
      expect(performance.now() - began).toBeLessThan(1_900);
    } finally {
      for (const socket of deaf.sockets) socket.destroy();
      deaf.process.kill('SIGKILL');
    }
  });

  test.each([
    'localhost:80',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:0',
    '127.0.0.1:65536',
    '127.0.0.1:8x',
    '127.0.0.1: 80',
    '::1:80',
    '[::1',
    '[::1]80',
    '[]:80',
    ':80',
    '300.0.0.1:80',
  ])('fail when they are no address and port: %s', async (address) => {
    expect(await tryLines([`probe ${address}`])).toEqual([`probe ${address} failed`]);
  });

  test('crash nothing with any text', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 80 }).map((any) => any.replaceAll('\0', ''));
    const line = fc.oneof(
      text,
      text.map((any) => `probe ${any}`),
      text.map((any) => `probe [${any}]:1`),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 30 }), async (lines) => {
        expect((await tryLines(lines)).length).toBeLessThanOrEqual(MOST_PROBES);
      }),
      { numRuns: 20 },
    );
  });

  test('have no result in other lines, in longer ones, and beyond the most', async () => {
    expect(await tryLines(['', 'probe', 'port 127.0.0.1:1', `probe ${'1'.repeat(100)}:1`])).toEqual([]);
    const many = Array.from({ length: MOST_PROBES + 5 }, () => `probe 127.0.0.1:${portOf(server)}`);
    expect(await tryLines(many)).toHaveLength(MOST_PROBES);
  });
});
