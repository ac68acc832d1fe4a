import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiCaller } from '../support/api/api-caller.ts';
import { type ApiProcess, startApiProcess } from '../support/api/api-process.ts';
import { EventReader } from '../support/api/event-reader.ts';
import { readByMany } from '../support/api/read-by-many.ts';
import { serveApi } from '../support/api/serve-api.ts';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { countTimers } from '../support/count-timers.ts';
import { until } from '../support/until.ts';

const MIB = 2 ** 20;
const OUTPUT_BYTES = 65_536;
const READERS = 1_000;
const TENANTS = 1_000;
const TENANTS_AT_ONCE = 50;
/** What is collected late counts as memory, so little may wait for that. */
const SETTINGS = {
  NODE_OPTIONS: '--max-semi-space-size=4',
  SHELLFLEET_API_RATE_LIMIT: '100000',
  SHELLFLEET_LOG_LEVEL: 'warn',
};

let stage: ClientStage;
let api: ApiProcess;
beforeAll(async () => {
  stage = await setClientStage();
  await stage.startHost();
  const { own, namespace, sealKey } = stage;
  api = await startApiProcess({ redisUrl: own.url, namespace, sealKey }, SETTINGS);
});
afterAll(async () => {
  await api?.[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

/** Counts the connections of clients, from the list of Redis. */
async function connections(): Promise<number> {
  const list = (await stage.redis.client('LIST')) as string;
  return list.split('\n').filter((line) => /name=shellfleet-(producer|feeds|events)/.test(line)).length;
}

/** Returns the bytes that Redis has sent to all clients. */
async function sentByRedis(): Promise<number> {
  return Number(/total_net_output_bytes:(\d+)/.exec(await stage.redis.info('stats'))?.[1]);
}

/** Returns the output in the events of a stream. */
function outputIn(events: readonly Buffer[]): Buffer {
  const all = events.map((event) => JSON.parse(/\ndata: (.*)/.exec(event.toString())?.[1] ?? ''));
  return Buffer.concat(all.slice(0, -1).map(({ data, encoding }) => Buffer.from(data, encoding)));
}

describe('a server', () => {
  test('gives a thousand readers the same bytes, also those who leave and resume', async () => {
    const fleet = await stage.connect();
    const { key } = await fleet.keys.create({ name: 'readers', scopes: ['read'] });
    const caller = new ApiCaller(api.url, key);
    const session = await fleet.session('read');
    const piece = (OUTPUT_BYTES / 8 / 4) * 3;
    const script = `read line; for i in 1 2 3 4 5 6 7 8; do head -c ${piece} /dev/urandom | base64 -w 0; done`;
    const command = await session.submit(script, { stdin: { open: true } });
    const [own, sent] = [await connections(), await sentByRedis()];
    const trial = {
      ...{ caller, pid: api.pid, commandId: command.id, readers: READERS, leaveAfter: 1 },
      begin: async () => {
        await command.write('go\n');
        await command.closeStdin();
      },
    };
    const { digests, resident } = await readByMany(trial);
    const events: Buffer[] = [];
    const once = new EventReader(caller, `/commands/${command.id}/events`, (event) => events.push(event));
    await once.read(await once.open());
    expect([...digests]).toEqual([once.digest]);
    const output = outputIn(events);
    expect(output.byteLength).toBe(OUTPUT_BYTES);
    expect(output.toString() === (await command.result()).stdout).toBe(true);
    // Redis has sent each reader a small part of its bytes, because they share what is read.
    expect((await sentByRedis()) - sent).toBeLessThan((READERS * OUTPUT_BYTES) / 2);
    expect((await connections()) - own).toBeLessThanOrEqual(4);
    expect(resident.most - resident.open).toBeLessThan(192 * MIB);
  }, 60_000);

  test('has no timer and no connection for each of a thousand tenants', async () => {
    const fleet = await stage.connect();
    const served = await serveApi({ redisUrl: stage.own.url, namespace: stage.namespace, sealKeys: [stage.sealKey] });
    await (await served.caller()).call('GET', '/me');
    const own = await connections();
    using timers = countTimers();
    for (let from = 0; from < TENANTS; from += TENANTS_AT_ONCE) {
      const callers = Array.from({ length: TENANTS_AT_ONCE }, async (_, at) => {
        const tenant = `tenant-${from + at}`;
        const { key } = await fleet.keys.create({ name: tenant, tenant, scopes: ['submit'] });
        return new ApiCaller(served.url, key).send('PUT', '/sessions/s', { headers: { connection: 'close' } });
      });
      const replies = await Promise.all(callers);
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
      await Promise.all(replies.map((reply) => reply.text()));
    }
    expect(await served.server.watched.metrics.text()).toContain(`shellfleet_api_callers ${TENANTS + 1}`);
    // The timers of requests end with their connections.
    await until(timers.running, (count) => count < 30);
    expect((await connections()) - own).toBeLessThanOrEqual(1);
    await served[Symbol.asyncDispose]();
  }, 60_000);
});
