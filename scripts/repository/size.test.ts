import { describe, expect, test } from 'vitest';
import { countLines, measureSize, partOf, renderSize } from './size.ts';

describe('the size of the source', () => {
  test.each([
    ['apps/worker/src/worker.ts', 'apps/worker'],
    ['libs/keeper/launcher/launch.c', 'libs/keeper'],
    ['infra/setup/src/images/build.ts', 'infra/setup'],
    ['clients/python/src/shellfleet/fleet.py', 'clients/python'],
    ['clients/python/tests/test_sse.py', undefined],
    ['scripts/release.ts', 'scripts'],
    ['apps/worker/src/worker.test.ts', undefined],
    ['apps/worker/src/audit/audit.bench.ts', undefined],
    ['libs/mailbox/src/outside-input.fuzz.test.ts', undefined],
    ['libs/protocol/test-support/fuzz.ts', undefined],
    ['tests/support/start-redis.ts', undefined],
    ['examples/agent-loop/src/main.ts', undefined],
    ['docs/rules.md', undefined],
    ['vitest.config.ts', undefined],
  ])('counts %s in %s', (path, part) => expect(partOf(path)).toBe(part));

  test('counts a line of 121 columns as two', () => {
    expect(countLines(`${'a'.repeat(121)}\n\n${'b'.repeat(120)}\n`)).toBe(4);
  });

  test('covers every package of this checkout', async () => {
    const parts = await measureSize();
    expect([...parts.keys()]).toEqual(
      expect.arrayContaining(['apps/worker', 'libs/keeper', 'libs/mailbox', 'scripts']),
    );
  });

  test('prints parts by size, then their sum', () => {
    const parts = new Map([
      ['libs/small', { files: 1, lines: 10 }],
      ['apps/large', { files: 2, lines: 90 }],
    ]);
    expect(renderSize(parts).split('\n')).toEqual([
      'source            lines  files',
      'apps/large           90      2',
      'libs/small           10      1',
      'all                 100      3',
    ]);
  });
});
