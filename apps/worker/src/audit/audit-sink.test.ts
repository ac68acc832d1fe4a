import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditEvent } from '@shellfleet/protocol';
import { auditKeys } from '@shellfleet/sealing';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { AuditChain } from './audit-chain.ts';
import { openAuditSink } from './audit-sink.ts';

const of = { namespace: 'n', host: 'h', tenant: 't' };
const keys = auditKeys([Buffer.alloc(32).toString('base64')], of);
const event = (entry: string): AuditEvent => ({
  ...{ type: 'start', session: 's', generation: 'g', entry, fence: 1, epoch: 1 },
});

async function openStage({ segmentBytes = 1_000_000 } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'sf-audit-sink-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const [key] = keys;
  if (key === undefined) throw new Error('no key');
  const chains = new Map<string, AuditChain>();
  const addChain = async (tenant: string) => {
    const chain = new AuditChain({
      ...{ directory: join(directory, `t-${tenant}`), key, keys, retentionMs: 1e9, segmentBytes },
    });
    await chain.open(undefined);
    chains.set(tenant, chain);
    return chain;
  };
  const chain = await addChain('t');
  const delivered: { host: string; tenant: string; record: { n: number } }[] = [];
  const state = { isDown: false };
  const logged: Record<string, unknown>[] = [];
  const open = (path = '/sink') =>
    openAuditSink({
      ...{ target: { type: 'unix', path }, directory, namespace: 'n', hostId: 'h' },
      heads: () => new Map([...chains].map(([tenant, { head }]) => [tenant, head])),
      logger: pino({ base: null }, { write: (line) => void logged.push(JSON.parse(line)) }),
      everyMs: 10,
      async deliver(_target, text) {
        if (state.isDown) throw new Error('refused');
        for (const line of text.trimEnd().split('\n')) delivered.push(JSON.parse(line));
      },
    });
  const add = async (count: number) => {
    for (let entry = 0; entry < count; entry += 1) await chain.write([event(`${entry}`)], 'written');
  };
  return {
    chainDirectory: join(directory, 't-t'),
    open,
    add,
    addChain,
    delivered,
    state,
    logged,
    numbers: () => delivered.map(({ record }) => record.n),
  };
}

describe('the sink of an audit', () => {
  test('COPY-1: gets the records of all files in their order, with host and tenant', async () => {
    const { open, add, numbers, delivered } = await openStage({ segmentBytes: 1 });
    await add(3);
    const sink = await open();
    await vi.waitFor(() => expect(numbers()).toEqual([1, 2, 3]));
    await add(2);
    expect(sink.waiting).toBe(2);
    await vi.waitFor(() => expect(numbers()).toEqual([1, 2, 3, 4, 5]));
    expect(delivered[0]).toMatchObject({ namespace: 'n', host: 'h', tenant: 't', mac: expect.any(String) });
    await sink.close();
  });

  test('gets a record of each tenant, although others always have a batch', async () => {
    const { open, addChain, delivered } = await openStage();
    const busy = [await addChain('busy-1'), await addChain('busy-2')];
    const quiet = await addChain('quiet');
    for (const one of busy.flatMap((chain) => Array<AuditChain>(5).fill(chain)))
      await one.write([event('x'.repeat(200_000))], 'written');
    await quiet.write([event('one')], 'written');
    const sink = await open();
    await vi.waitFor(() => expect(delivered).toHaveLength(11));
    expect(delivered.findIndex(({ tenant }) => tenant === 'quiet')).toBeLessThan(5);
    await sink.close();
  });

  test('COPY-2: gets what it missed after it was away, and after another process began', async () => {
    const { open, add, numbers, state, logged } = await openStage();
    await add(1);
    const first = await open();
    await vi.waitFor(() => expect(numbers()).toEqual([1]));
    state.isDown = true;
    await add(2);
    await vi.waitFor(() => expect(first.isUp).toBe(false));
    await first.close();
    expect(numbers()).toEqual([1]);
    state.isDown = false;
    await add(1);
    const second = await open();
    await vi.waitFor(() => expect(numbers()).toEqual([1, 2, 3, 4]));
    await second.close();
    expect(logged).toEqual([expect.objectContaining({ msg: 'sink.failed', sink: 'audit', problem: 'refused' })]);
    // Another sink has nothing yet.
    const other = await open('/other');
    await vi.waitFor(() => expect(numbers()).toEqual([1, 2, 3, 4, 1, 2, 3, 4]));
    await other.close();
  });

  test('COPY-3: counts records that were removed before it took them', async () => {
    const { chainDirectory, open, add, numbers, state, logged } = await openStage({ segmentBytes: 1 });
    await add(1);
    const first = await open();
    await vi.waitFor(() => expect(numbers()).toEqual([1]));
    state.isDown = true;
    await add(3);
    await first.close();
    for (const file of readdirSync(chainDirectory).sort().slice(0, 3)) rmSync(join(chainDirectory, file));
    state.isDown = false;
    const second = await open();
    await vi.waitFor(() => expect(numbers()).toEqual([1, 4]));
    expect(second.dropped).toBe(2);
    expect(logged.at(-1)).toMatchObject({ msg: 'sink.records-missing', dropped: 2, 'shellfleet.tenant.id': 't' });
    await second.close();
  });
});
