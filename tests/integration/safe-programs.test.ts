import { describe, expect, inject, test } from 'vitest';
import { runSafeTrial } from '../rules-trial/safe-programs/run-safe-trial.ts';

const dockerHost = inject('dockerHost');
const images = [inject('sessionImage'), inject('testImages').busybox];

describe('the trial of safe programs', () => {
  // Faults 102 and 110. `npm run rules-trial` generates 20,000 commands.
  test('finds no safe program that writes or starts anything, in any argument order', {
    timeout: 120_000,
  }, async () => {
    const { run, programs, wronglyClaimed } = await runSafeTrial({ dockerHost, images, seed: 102, count: 400 });
    expect(wronglyClaimed).toEqual([]);
    expect(run).toBeGreaterThan(600);
    expect(programs).toEqual(
      expect.arrayContaining(['base64', 'cp', 'find', 'grep', 'mkdir', 'sed', 'tail', 'touch', 'uniq']),
    );
  });

  test('finds the programs that a wrong list calls safe', { timeout: 60_000 }, async () => {
    const wrong = ['base64', 'find', 'mkdir', 'sed', 'tac', 'tee', 'uniq', 'xargs'];
    const { wronglyClaimed } = await runSafeTrial({
      dockerHost,
      images: images.slice(0, 1),
      seed: 7,
      count: 500,
      claimOf: ([name = '']) => (wrong.includes(name) ? 'safe' : undefined),
    });
    const found = new Set(wronglyClaimed.map(({ argv: [name = ''] }) => name));
    expect([...found].sort()).toEqual(['find', 'mkdir', 'sed', 'tac', 'tee', 'uniq', 'xargs']);
  });
});
