import { randomBytes } from 'node:crypto';
import { readAuditRecords } from '@shellfleet/mailbox';
import { type AuditEvent, type AuditRecord, fleetKeys, hostKeys, parseAuditChain } from '@shellfleet/protocol';
import { connectRedis } from '@shellfleet/redis';
import { createSealer, createSealKey, openAuditRecords, RemovalMarks } from '@shellfleet/sealing';
import { logErrorsInto, openRedisAudit, trimStream } from '@shellfleet/worker/test-support';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { declareTestFleet, keyspaceOf } from '../support/keyspace.ts';

// The audit of a process in a real Redis: what it does when calls fail, and what is removed from the stream.

const DAY_MS = 86_400_000;
const sealKey = createSealKey();
const sealer = createSealer([sealKey]);
const logged: string[] = [];
let redis: Redis;
let space: string;
let namespace: string;

beforeAll(async () => {
  redis = (await connectRedis(inject('redisUrl'), 'host', 'audit')).redis;
});
afterAll(() => redis.disconnect());
beforeEach(async () => {
  namespace = `t-${randomBytes(5).toString('hex')}`;
  await declareTestFleet(inject('redisUrl'), namespace);
  space = keyspaceOf(namespace);
  logged.length = 0;
});

const event = (entry: string): AuditEvent => ({
  ...{ type: 'start', session: 's', generation: 'g', entry },
  ...{ fence: 1, epoch: 1 },
});
const open = (hostId = 'h', boot = 'b', maxBytes = 1e9) =>
  openRedisAudit({
    ...{ redis, namespace: space, hostId, boot, sealKeys: [sealKey], sealer, maxBytes },
    ...{ retentionMs: DAY_MS, noted: true, logger: logErrorsInto(logged) },
  });

/** Returns what each entry of the stream has: entry ids of events, or their types. */
async function readEvents(): Promise<string[][]> {
  return (await readAuditRecords(redis, space, '-', 1_000)).map(({ chain, first, sealed }) => {
    const name = parseAuditChain(chain);
    const lines = name && openAuditRecords(sealer, space, { chain: name, first, sealed });
    return (lines ?? []).map((line) => {
      const { record } = JSON.parse(line) as { record: AuditRecord };
      return 'entry' in record.event ? (record.event.entry ?? '') : record.event.type;
    });
  });
}

async function verify(...more: string[]) {
  const cli = new FleetCli({ redisUrl: inject('redisUrl'), namespace, sealKey });
  const { exitCode, stdout } = await cli.text(['audit', 'verify', '--store', 'redis', ...more]);
  return { exitCode, findings: stdout.split('\n').slice(0, -1) };
}

/** Lets the next call of a script fail: before Redis has it, or after Redis has executed it. */
function failNext(when: 'before' | 'after'): void {
  const evalsha = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
  vi.spyOn(redis, 'evalsha').mockImplementationOnce((async (...args: unknown[]) => {
    if (when === 'after') await evalsha(...args);
    throw new Error('Connection is closed.');
  }) as never);
}

describe('an audit in Redis', () => {
  test('has a recorded event, behind the noted ones, when its call resolves', async () => {
    const audit = open();
    audit.note('t', () => event('a'));
    await audit.record('t', event('b'));
    expect(await readEvents()).toEqual([['a', 'b']]);
    audit.note('t', () => event('c'));
    await audit.close();
    expect(await readEvents()).toEqual([['a', 'b'], ['c'], ['closed']]);
  });

  test.each(['before', 'after'] as const)(
    'keeps noted events once when a call fails %s it took effect',
    async (when) => {
      const audit = open();
      audit.note('t', () => event('a'));
      failNext(when);
      await expect(audit.record('t', event('b'))).rejects.toMatchObject({ code: 'AUDIT_UNAVAILABLE' });
      await audit.record('t', event('c'));
      expect((await readEvents()).flat()).toEqual(when === 'before' ? ['a', 'c'] : ['a', 'b', 'c']);
      await audit.close();
      expect(await verify()).toEqual({ exitCode: 0, findings: [] });
    },
  );

  test('writes noted events without another call when Redis takes them again', async () => {
    const audit = open();
    failNext('before');
    audit.note('t', () => event('a'));
    await expect.poll(readEvents).toEqual([['a']]);
    await audit.close();
  });

  test('reports records that Redis has lost, and continues behind them', async () => {
    const audit = open();
    for (const entry of ['a', 'b', 'c']) await audit.record('t', event(entry));
    const { auditRecords, auditHeads } = fleetKeys(space);
    await redis.del(auditRecords, auditHeads);
    await audit.record('t', event('d'));
    await audit.close();
    expect(await readEvents()).toEqual([['rewound', 'd'], ['closed']]);
    expect(logged.join('')).toContain('audit.cut');
    const { exitCode, findings } = await verify();
    expect({ exitCode, findings: findings.map((line) => line.split(': ').at(-1)) }).toEqual({
      exitCode: 1,
      findings: ['Redis had lost records 1 to 3', 'records 1 to 3 are missing'],
    });
  });

  test('loses the oldest records of all chains over its size, counts them, and stays whole', async () => {
    const [one, other] = [open('h1', 'b1', 4_000), open('h2', 'b2', 4_000)];
    for (let entry = 0; entry < 10; entry += 1)
      for (const audit of [one, other]) await audit.record('t', event(`${entry}`));
    await Promise.all([one.close(), other.close()]);
    await expect.poll(async () => Number(await redis.hget(fleetKeys(space).auditRemoved, 'bytes'))).toBeLessThan(4_001);
    const { exitCode, findings } = await verify();
    expect(exitCode).toBe(1);
    expect(await verify('--allow-removed-early')).toEqual({ exitCode: 0, findings });
    expect(findings).toEqual([
      expect.stringMatching(/^removed-early: host h[12], .*: \d+ records were removed before their time/),
      expect.stringMatching(/^removed-early: host h[12], .*: \d+ records were removed before their time/),
    ]);
    const left = (await readEvents()).flat();
    expect(left.length).toBeLessThan(14);
    const counts = findings.map((line) => Number(/: (\d+) records/.exec(line)?.[1]));
    expect(left.length + counts.reduce((sum, count) => sum + count, 0)).toBe(22);
  });

  test.each(['1000000000000000', 'much', '9223372036854775807'])(
    'loses nothing when somebody writes %s as its size',
    async (size) => {
      const audit = open('h', 'b', 100_000);
      const { auditRecords, auditRemoved } = fleetKeys(space);
      await audit.record('t', event('a'));
      // Entries that do not open, and copies of those that do, count as little.
      await redis.xadd(auditRecords, '*', 'c', 'x', 'f', '1', 'd', 'x'.repeat(200_000));
      const [[, fields] = ['', []]] = await redis.xrange(auditRecords, '-', '+', 'COUNT', 1);
      for (let copy = 0; copy < 300; copy += 1) await redis.xadd(auditRecords, '*', ...fields);
      await redis.hset(auditRemoved, 'bytes', size);
      await audit.record('t', event('b'));
      await expect.poll(async () => Number(await redis.hget(auditRemoved, 'bytes'))).toBeLessThan(2_000);
      await audit.record('t', event('c'));
      await audit.close();
      expect([...new Set((await readEvents()).flat())]).toEqual(['a', 'b', 'c', 'closed']);
      expect(logged).toEqual([]);
    },
  );

  test('is exported once, without a gap, when somebody adds an entry again', async () => {
    const audit = open();
    for (const entry of ['a', 'b', 'c']) await audit.record('t', event(entry));
    const { auditRecords } = fleetKeys(space);
    const [[, fields] = ['', []]] = await redis.xrange(auditRecords, '-', '+', 'COUNT', 1);
    await redis.xadd(auditRecords, '*', ...fields);
    await audit.close();
    const cli = new FleetCli({ redisUrl: inject('redisUrl'), namespace, sealKey });
    const { stdout, stderr } = await cli.text(['audit', 'export', '--store', 'redis']);
    const numbers = stdout.trim().split('\n');
    expect(numbers.map((line) => JSON.parse(line).n)).toEqual([1, 2, 3, 4]);
    expect(stderr).toMatch(/^shellfleet: The entry \S+ is left out: records of h b t up to 3 were before it\.\n$/);
  });

  test('loses records by their own age, and shows others that were removed or backdated', async () => {
    const marks = new RemovalMarks([sealKey], space);
    const logger = logErrorsInto(logged);
    const trim = () =>
      trimStream({ redis, namespace: space, marks, sealer, retentionMs: DAY_MS, maxBytes: 1e9, logger });
    const { auditRecords } = fleetKeys(space);
    await redis.set(hostKeys(space, 'h').boot, 'b');
    const audit = open();
    vi.useFakeTimers({ now: Date.now() - 2 * DAY_MS, toFake: ['Date'] });
    try {
      for (const entry of ['a', 'b']) await audit.record('t', event(entry));
    } finally {
      vi.useRealTimers();
    }
    for (const entry of ['c', 'd', 'e']) await audit.record('t', event(entry));
    await trim();
    expect(await readEvents()).toEqual([['c'], ['d'], ['e']]);
    expect(await verify()).toEqual({ exitCode: 0, findings: [] });
    // Ids that say that the records are old do not have them removed.
    const entries = await redis.xrange(auditRecords, '-', '+');
    await redis.del(auditRecords);
    for (const [at, [, fields]] of entries.entries()) await redis.xadd(auditRecords, `1-${at + 1}`, ...fields);
    await trim();
    expect(await readEvents()).toEqual([['c'], ['d'], ['e']]);
    await redis.xdel(auditRecords, '1-1');
    expect(await verify()).toMatchObject({ exitCode: 1, findings: [expect.stringMatching(/record 3 is missing$/)] });
    await audit.close();
  });
});
