import { setImmediate as immediate } from 'node:timers/promises';
import type { Appended, Fenced } from '@shellfleet/mailbox';
import type { StoredChunk } from '@shellfleet/protocol';
import { describe, expect, test, vi } from 'vitest';
import { CleanOutput } from '../output/clean-output.ts';
import { AttachedReader } from './attached-reader.ts';
import { OutputForgotten, OutputStore } from './output-store.ts';

const MIB = 1 << 20;
const STORED: Appended = { type: 'stored', offsets: { stdout: 0, stderr: 0 } };

function createStore(
  append: (entries: readonly StoredChunk[]) => Promise<Appended | Fenced>,
  streamBytes = 64 * MIB,
  othersRun = true,
  reader?: AttachedReader,
) {
  const said: string[] = [];
  const texts = { maxBytes: 100, maxLines: 100, keep: 'tail', encoding: 'utf8' } as const;
  const clean = new CleanOutput({ streamBytes, texts });
  const log = { append: async () => void said.push('log'), async *restore() {} };
  const store = new OutputStore({
    clean,
    log,
    append: (entries) => {
      said.push('append');
      return append(entries);
    },
    onLogFailed: () => said.push('log failed'),
    ack: (_stream, offset) => said.push(`ack ${offset}`),
    pause: () => said.push('pause'),
    resume: () => said.push('resume'),
    othersRun: () => othersRun,
    reader,
    onLost: (reason) => said.push(`lost: ${reason}`),
  });
  return { store, said, log, clean };
}

describe("the store of a command's output", () => {
  test('drops output after a failed append, and rejects its end()', async () => {
    const { store, said } = createStore(() => Promise.reject(new Error('broken')));
    store.push('stdout', 0, Buffer.alloc(2 * MIB, 'x'));
    await expect.poll(() => said).toEqual(['pause', 'append', 'lost: failed', 'resume']);
    store.push('stdout', 2 * MIB, Buffer.alloc(2 * MIB, 'x'));
    await expect(store.end()).rejects.toThrow('broken');
    expect(said).toHaveLength(4);
  });

  test('stores and acknowledges nothing for a fenced owner, and reads to the end', async () => {
    const { store, said } = createStore(async () => ({ type: 'fenced' }));
    store.push('stdout', 0, Buffer.alloc(2 * MIB, 'x'));
    await expect.poll(() => said).toEqual(['pause', 'append', 'lost: fenced', 'resume']);
    store.push('stdout', 2 * MIB, Buffer.from('more'));
    await store.end();
    expect(said).toHaveLength(4);
  });

  test('rejects end() with OutputForgotten when Redis has lost stored output', async () => {
    const { store } = createStore(async () => ({ type: 'misplaced', offsets: { stdout: 7, stderr: 0 } }));
    store.push('stdout', 0, Buffer.alloc(MIB, 'x'));
    await expect(store.end()).rejects.toBeInstanceOf(OutputForgotten);
  });

  test('writes the log after the stream (STORE-4)', async () => {
    const { store, said } = createStore(async () => STORED, 1_000);
    store.push('stdout', 0, Buffer.alloc(MIB / 2, 'x'));
    await store.end();
    expect(said.indexOf('append')).toBeGreaterThanOrEqual(0);
    expect(said.indexOf('append')).toBeLessThan(said.indexOf('log'));
    expect(said.at(-1)).toBe(`ack ${MIB / 2}`);
  });

  test('counts a gap in the stream when the log cannot be written', async () => {
    const { store, said, log } = createStore(async () => STORED, 1_000);
    log.append = () => Promise.reject(new Error('no space left on the disk'));
    store.push('stdout', 0, Buffer.alloc(MIB / 2, 'x'));
    const last = await store.end();
    expect(said).toContain('log failed');
    expect(last).toMatchObject([{ rawTo: MIB / 2, omittedBytes: MIB / 2 - 1_000 }]);
  });

  test.each([
    [true, ['pause']],
    [false, ['pause', 'resume']],
  ])('throttles output over the budget only while other entries run (%s)', async (othersRun, expected) => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const { store, said } = createStore(async () => STORED, 1, othersRun);
      store.push('stdout', 0, Buffer.alloc(MIB, 'x'));
      await immediate();
      expect(said.filter((word) => word === 'pause' || word === 'resume')).toEqual(expected);
      vi.runAllTimers();
      await store.end();
      expect(said).toContain('resume');
    } finally {
      vi.useRealTimers();
    }
  });

  test('frees the memory of output over the budget once the log has it', async () => {
    const { store, log } = createStore(async () => STORED, 0, false);
    const written: { length: number; data: Buffer }[] = [];
    log.append = async (...[pieces]: { data: Buffer }[][]) => {
      for (const { data } of pieces ?? []) written.push({ length: data.length, data });
    };
    for (let at = 0; at < 4; at += 1) store.push('stdout', at * 65_536, Buffer.alloc(65_536, 'x'));
    await store.end();
    expect(written.map(({ length }) => length)).toEqual([65_536, 65_536, 65_536, 65_536]);
    expect(written.every(({ data }) => data.length === 0)).toBe(true);
  });

  test('stores but does not acknowledge what an attached reader holds back (STORE-5)', async () => {
    const reader = new AttachedReader({ stallMs: 60_000, reachRedis: async () => {} });
    const { store, said } = createStore(async () => STORED, 0, false, reader);
    for (let at = 0; at < 6; at += 1) {
      store.push('stdout', at * MIB, Buffer.alloc(MIB, 'x'));
      await expect.poll(() => said.filter((word) => word === 'log').length).toBeGreaterThan(at);
    }
    await expect.poll(() => reader.holdsBack).toBe(true);
    const acknowledged = () => Math.max(...said.map((word) => Number(/^ack (\d+)$/.exec(word)?.[1] ?? 0)));
    await expect.poll(() => said.includes('resume')).toBe(true);
    await store.end();
    expect(acknowledged()).toBeLessThan(5 * MIB);
    reader.seen({ stdout: 6 * MIB, stderr: 0 });
    expect(acknowledged()).toBe(6 * MIB);
    reader.close();
  });
});
