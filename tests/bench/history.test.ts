import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { append, compare, type HistoryEntry, readHistory, toEntry, writeHistory } from './history.ts';
import { HISTORY } from './report/record.ts';
import { sampleFigures } from './sample-figures.ts';
import { checkTargets, type Target } from './targets.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bench-history-'));
});
afterAll(() => rm(directory, { recursive: true }));

const machine = { cpus: 2, cpuModel: 'a model', node: 'v24.0.0', redis: '7.0.15', docker: '28.0.0' };
const entry = (ratios: Record<string, number>, cpus = 2): HistoryEntry => ({
  at: '2026-11-23T05:00:00.000Z',
  commit: 'abc1234',
  machine: { ...machine, cpus },
  ratios,
});
const target = (id: string, value: number, bound: Target['bound'] = 'at most', unit = '×'): Target => ({
  id,
  name: id,
  value,
  range: undefined,
  limit: 1,
  bound,
  unit,
  passed: true,
});

describe('the comparison with recorded runs', () => {
  const failed = (targets: Target[], history: HistoryEntry[]) =>
    compare(targets, history, 2).flatMap(({ id, passed }) => (passed ? [] : id));

  test('fails a ratio that is worse than recorded ones by more than a quarter', () => {
    const history = [entry({ cost: 1, speed: 1 })];
    expect(failed([target('cost', 1.25), target('speed', 0.8, 'at least')], history)).toEqual([]);
    expect(failed([target('cost', 1.26), target('speed', 0.79, 'at least')], history)).toEqual(['cost', 'speed']);
    expect(failed([target('cost', 0.1), target('speed', 9, 'at least')], history)).toEqual([]);
  });

  test('takes the median of the last three runs on as many processors', () => {
    const history = [
      entry({ cost: 9 }),
      entry({ cost: 1 }),
      entry({ cost: 5 }, 8),
      entry({ cost: 3 }),
      entry({ cost: 2 }),
    ];
    expect(compare([target('cost', 2)], history, 2)).toEqual([
      { id: 'cost', name: 'cost', value: 2, reference: 2, passed: true },
    ]);
    expect(compare([target('cost', 2)], history.slice(0, 2), 2)[0]?.reference).toBe(5);
    expect(compare([target('cost', 2)], history, 4)).toEqual([]);
  });

  test('leaves out figures that are no ratio or that no run has recorded', () => {
    expect(compare([target('memory', 9, 'at most', 'KB'), target('new', 9)], [entry({ memory: 1 })], 2)).toEqual([]);
  });
});

describe('the history file', () => {
  test('is read as it was written, and begins empty', async () => {
    const path = join(directory, 'history.json');
    expect(await readHistory(path)).toEqual([]);
    const facts = { ...machine, commit: 'abc1234', memoryBytes: 1, kernel: '6' };
    const written = [toEntry('2026-11-23T05:00:00.000Z', facts, checkTargets(sampleFigures()))];
    expect(Object.keys(written[0]!.ratios)).toContain('idle-p50');
    expect(Object.keys(written[0]!.ratios)).not.toContain('idle-memory');
    await writeHistory(path, written);
    expect(await readHistory(path)).toEqual(written);
  });

  test('keeps the last twenty runs', () => {
    const history = Array.from({ length: 20 }, (_, index) => entry({ cost: index + 1 }));
    expect(append(history, entry({ cost: 99 })).map(({ ratios }) => ratios.cost)).toEqual([
      ...Array.from({ length: 19 }, (_, index) => index + 2),
      99,
    ]);
  });

  test.each([
    ['no JSON', '[{'],
    ['another shape', '{"runs": []}'],
    ['a ratio that is no number', JSON.stringify([{ ...entry({}), ratios: { cost: 'fast' } }])],
    ['a ratio of zero', JSON.stringify([entry({ cost: 0 })])],
    ['too many runs', JSON.stringify(Array.from({ length: 21 }, () => entry({ cost: 1 })))],
  ])('is refused with its name and the remedy when it has %s', async (_, text) => {
    const path = join(directory, 'broken.json');
    await writeFile(path, text);
    await expect(readHistory(path)).rejects.toThrow(
      /broken\.json is not a history of the bench: [\s\S]+\nRestore it from git, or delete it to begin anew\.$/,
    );
  });

  test('of this repository can be read', async () => {
    expect(await readHistory(join(checkoutRoot, 'docs', HISTORY))).toEqual(expect.any(Array));
  });
});
