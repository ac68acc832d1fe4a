import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { deliver } from './deliver.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sf-sink-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Starts a receiver on a socket file. */
async function listen(name: string, onConnection: (socket: Socket) => void): Promise<{ path: string; server: Server }> {
  const path = join(directory, name);
  const server = createServer({ allowHalfOpen: true }, onConnection);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return { path, server };
}

describe('delivery to a sink', () => {
  test('appends to a file, which may be renamed between two batches', async () => {
    const path = join(directory, 'log.jsonl');
    await deliver({ type: 'file', path }, '{"a":1}\n');
    await deliver({ type: 'file', path }, '{"a":2}\n');
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"a":2}\n');
    rmSync(path);
    await deliver({ type: 'file', path }, '{"a":3}\n');
    expect(readFileSync(path, 'utf8')).toBe('{"a":3}\n');
    await expect(deliver({ type: 'file', path: '/nonexistent/a' }, '')).rejects.toThrow('ENOENT');
  });

  test('begins a new line behind one that was written in part', async () => {
    const path = join(directory, 'cut-off.jsonl');
    writeFileSync(path, '{"a":1}\n{"a":');
    await deliver({ type: 'file', path }, '{"a":2}\n');
    await deliver({ type: 'file', path }, '{"a":3}\n');
    expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{"a":\n{"a":2}\n{"a":3}\n');
  });

  test('ends when the receiver has read all of a large batch and closes the connection', async () => {
    let received = '';
    const { path } = await listen('reads', (socket) => {
      socket.on('data', (data) => {
        received += data;
      });
      socket.on('end', () => socket.end());
    });
    const text = `${'x'.repeat(3_000_000)}\n`;
    await deliver({ type: 'unix', path }, text);
    expect(received).toBe(text);
  });

  test('fails when the receiver goes away before it has read everything', async () => {
    const { path } = await listen('leaves', (socket) => {
      socket.once('data', () => socket.destroy());
    });
    await expect(deliver({ type: 'unix', path }, 'x'.repeat(3_000_000))).rejects.toThrow();
    await expect(deliver({ type: 'unix', path: join(directory, 'none') }, 'x')).rejects.toThrow('ENOENT');
    await expect(deliver({ type: 'tcp', host: '127.0.0.1', port: 1 }, 'x')).rejects.toThrow('ECONNREFUSED');
  });

  test('fails when the receiver reads nothing, or does not close the connection', async () => {
    const { path } = await listen('waits', (socket) => void onTestFinished(() => void socket.destroy()));
    await expect(deliver({ type: 'unix', path }, 'x', 50)).rejects.toThrow('in 50 ms');
    const reading = await listen('keeps', (socket) => {
      socket.resume();
      onTestFinished(() => void socket.destroy());
    });
    await expect(deliver({ type: 'unix', path: reading.path }, 'x', 50)).rejects.toThrow('in 50 ms');
  });
});
