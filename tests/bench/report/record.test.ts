import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readHistory } from '../history.ts';
import { readPlan } from '../plan.ts';
import { sampleFigures } from '../sample-figures.ts';
import { checkTargets } from '../targets.ts';
import { HISTORY, record, withFigures } from './record.ts';

let docs: string;
beforeAll(async () => {
  docs = await mkdtemp(join(tmpdir(), 'bench-docs-'));
});
afterAll(() => rm(docs, { recursive: true }));

const facts = { cpus: 2, cpuModel: 'a <model> & more', node: 'v24.0.0', redis: '7.0.15', docker: '28.0.0' };
const machine = { ...facts, commit: 'abc1234', memoryBytes: 2 ** 34, kernel: '6.1.0' };

describe('a recorded run', () => {
  test('replaces the last one in the page, the chart and the history', async () => {
    await copyFile(join(checkoutRoot, 'docs/benchmarks.md'), join(docs, 'benchmarks.md'));
    const before = await readFile(join(docs, 'benchmarks.md'), 'utf8');
    const figures = sampleFigures();
    const run = { machine, plan: readPlan([]), figures, targets: checkTargets(figures) };
    await record({ ...run, at: '2026-11-23T05:00:00.000Z', tables: '| first |' }, [], docs);
    const once = await readHistory(join(docs, HISTORY));
    await record({ ...run, at: '2026-11-24T05:00:00.000Z', tables: '| second |' }, once, docs);

    const page = await readFile(join(docs, 'benchmarks.md'), 'utf8');
    expect(page).toContain('| second |\n<!-- /figures -->');
    expect(page).not.toContain('| first |');
    expect(page.split('<!-- figures -->')[0]).toBe(before.split('<!-- figures -->')[0]);
    expect(page.split('<!-- /figures -->')[1]).toBe(before.split('<!-- /figures -->')[1]);
    expect(page).toContain('on 2026-11-24, commit abc1234: 2 × a <model> & more, 16 GiB, Linux 6.1.0, Node 24.0.0');
    expect(await readFile(join(docs, 'benchmarks.svg'), 'utf8')).toContain(
      '2026-11-24, abc1234, 2 × a &lt;model&gt; &amp; more',
    );
    expect((await readHistory(join(docs, HISTORY))).map(({ at }) => at)).toEqual([
      '2026-11-23T05:00:00.000Z',
      '2026-11-24T05:00:00.000Z',
    ]);
  });

  test.each([
    '',
    '<!-- figures -->',
    '<!-- /figures --> <!-- figures -->',
    '<!-- figures --><!-- /figures --><!-- figures -->',
  ])('is refused for a page without one pair of marks: %j', (page) => {
    expect(() => withFigures(page, '')).toThrow(
      'must have <!-- figures --> and, after it, <!-- /figures -->, once each',
    );
  });

  test.each(['--quick', '--only=bullmq'])('must be whole: %s is refused', (option) => {
    expect(() => readPlan(['--record', option])).toThrow('--record is for whole runs');
  });

  test('is refused when it names an unknown part, with the parts that exist', () => {
    expect(() => readPlan(['--only', 'bullmq,redis'])).toThrow('--only takes names of floor, bullmq, docker-exec');
  });
});
