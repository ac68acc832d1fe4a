import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LIMITS } from '@shellfleet/protocol';
import { pino } from 'pino';
import { loadTools, type Tool } from './load-tools.ts';
import { PreparedProcesses } from './prepared-processes.ts';

// Measures a call of the simplest tool, from the request to the end of all its processes, without the queue.
// node_modules/.bin/node --conditions=@shellfleet/source apps/worker/src/tools/tool-call.bench.ts

const CALLS = 15;
const PAUSE_MS = 400;

const logger = pino({ level: 'silent' });
const module = fileURLToPath(new URL('../../../../tests/fixtures/tools/everyday.ts', import.meta.url));
const onDeath = () => {};
const env = { PATH: process.env.PATH ?? '' };
const tool = (await loadTools([module], env, 'bench:', logger)).find(({ name }) => name === 'add') as Tool;
const preload = [tool.zod ?? ''];

await measure('a new process', async () => {
  const processes = new PreparedProcesses({ slots: 0, env, preload: [], mark: 'bench:', onDeath });
  return call(processes);
});
const processes = new PreparedProcesses({ slots: 1, env, preload, mark: 'bench:', onDeath });
processes.prepare(tool);
await measure('a prepared process, after a pause', async () => {
  await delay(PAUSE_MS);
  return call(processes);
});
await measure('one after another, 1 slot', () => call(processes));
processes.close();
const both = new PreparedProcesses({ slots: 2, env, preload, mark: 'bench:', onDeath });
both.prepare(tool);
await measure('one after another, 2 slots', () => call(both));
both.close();

async function call(from: PreparedProcesses): Promise<number> {
  const startedAt = performance.now();
  const end = await from.run(tool, {
    request: { type: 'call', module, exported: 'add', name: 'add', outputBytes: LIMITS.toolOutputBytes },
    args: '{"a":1,"b":2}',
    timeoutMs: 30_000,
    outputBytes: LIMITS.toolOutputBytes,
    signal: new AbortController().signal,
  });
  if (end.type !== 'reported') throw new Error(JSON.stringify(end));
  return performance.now() - startedAt;
}

async function measure(what: string, once: () => Promise<number>): Promise<void> {
  const times: number[] = [];
  for (let done = 0; done < CALLS; done += 1) times.push(await once());
  times.sort((a, b) => a - b);
  const [least = 0, median = 0] = [times[0], times[CALLS >> 1]];
  process.stdout.write(`${what}: median ${median.toFixed(1)} ms, least ${least.toFixed(1)} ms\n`);
}
