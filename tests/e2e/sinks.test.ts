import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isLogField } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/redis-process.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

/** A receiver that appends what it reads to a file, and closes a connection when its sender does. */
const RECEIVER = `
  const [port, path] = process.argv.slice(1);
  require('node:net')
    .createServer((socket) => socket.on('data', (data) => require('node:fs').appendFileSync(path, data)))
    .listen(Number(port), '127.0.0.1', () => console.log('ready'));
`;

let directory: string;
let port: number;
let received: string;
let receiver: ChildProcess | undefined;
let stack: TestFleet;

async function startReceiver(): Promise<void> {
  receiver = spawn(process.execPath, ['-e', RECEIVER, String(port), received], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (receiver.stdout !== null) await once(receiver.stdout, 'data');
}

async function killReceiver(): Promise<void> {
  if (receiver === undefined || receiver.exitCode !== null) return;
  receiver.kill('SIGKILL');
  await once(receiver, 'exit');
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-sinks-'));
  received = join(directory, 'received.jsonl');
  port = await freePort();
  await startReceiver();
  const sink = `tcp://127.0.0.1:${port}`;
  stack = await startFleet({ env: { SHELLFLEET_LOG_SINK: sink, SHELLFLEET_AUDIT_SINK: sink } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await killReceiver();
  await rm(directory, { recursive: true, force: true });
});

/** Returns the whole lines that the receiver has. */
async function lines(): Promise<string[]> {
  return (await readFile(received, 'utf8').catch(() => '')).split('\n').slice(0, -1);
}

/** Returns the lines of the audit's files. */
async function audited(): Promise<string[]> {
  const hosts = join(stack.stateDirectory, 'hosts');
  const [host = ''] = await readdir(hosts);
  const chain = join(hosts, host, 'audit', 't-default');
  const texts = await Promise.all((await readdir(chain)).map((file) => readFile(join(chain, file), 'utf8')));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
}

describe('the sinks of a worker', () => {
  test('get all records and later lines after a receiver, and then the worker, was killed', async () => {
    const session = await stack.fleet.session('seen');
    const before = await session.run('echo before');
    await until(lines, (found) => found.some((line) => line.includes(before.commandId)));
    await killReceiver();
    const [worker] = stack.workers;
    // Commands go on without the receiver.
    for (let index = 0; index < 20; index += 1)
      expect(await session.run('echo between')).toMatchObject({ exitCode: 0 });
    await until(
      () => worker?.log ?? '',
      (log) => log.includes('"sink.failed"'),
    );
    await worker?.kill();
    await worker?.start();
    const after = await session.run('echo after');
    await startReceiver();
    const isComplete = async () => {
      const found = await lines();
      const records = (await audited()).filter((line) => !found.some((copy) => copy.endsWith(line.slice(1))));
      const ended = (await audited()).some(
        (line) => line.includes(`"end"`) && line.includes(after.commandId.slice(-26)),
      );
      return { records, ended, logged: found.some((line) => line.includes(`"${after.commandId}"`)) };
    };
    const state = await until(isComplete, ({ records, ended, logged }) => records.length === 0 && ended && logged);
    expect(state.records).toEqual([]);
    const found = (await lines()).map((line) => JSON.parse(line) as Record<string, unknown>);
    const copies = found.filter(({ record }) => record !== undefined);
    expect(copies[0]).toMatchObject({ namespace: stack.keyspace, host: 'h1', tenant: 'default', record: { n: 1 } });
    const logged = found.filter(({ record }) => record === undefined);
    expect(logged.flatMap((line) => Object.keys(line).filter((name) => !isLogField(name)))).toEqual([]);
  });
});
