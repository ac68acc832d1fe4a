import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const LIMITS = JSON.stringify(new URL('heap-limits.ts', import.meta.url).href);
/** Keeps up to 600,000 objects alive, as a worker under load would, and prints the first and the largest size of its young generation. */
const PROGRAM = `
  const { limitHeap, youngGenerationBytes } = await import(${LIMITS});
  limitHeap();
  const sizes = [youngGenerationBytes()];
  let kept = [];
  for (let count = 0; count < 1_200_000; count += 1) {
    kept.push({ count, more: [count] });
    if (kept.length === 600_000) kept = [];
    if (count % 100_000 === 0) sizes.push(youngGenerationBytes());
  }
  process.stdout.write(\`\${sizes[0]} \${Math.max(...sizes)}\`);`;

// V8 may shrink it where other processes take the processors; the next check lets it grow again.
test('the young generation has its size from the start, and does not outgrow it under load', async () => {
  const args = ['--no-warnings', '--input-type=module', '--eval', PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const [first, most] = stdout.split(' ').map(Number);
  expect(first).toBe(32 * 1024 * 1024);
  expect(most).toBe(32 * 1024 * 1024);
});

/** Keeps the newest 300,000 objects, so that all are promoted and most are garbage, and prints the largest size of its old generation. */
const PROMOTING = `
  const { getHeapSpaceStatistics, setFlagsFromString } = await import('node:v8');
  const { limitHeap } = await import(${LIMITS});
  limitHeap();
  if (process.argv.includes('unlimited')) setFlagsFromString('--heap-growing-percent=0');
  const kept = [];
  let most = 0;
  for (let count = 0; count < 4_000_000; count += 1) {
    kept[count % 300_000] = { count, more: [count] };
    if (count % 20_000 !== 0) continue;
    const old = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space');
    most = Math.max(most, old.space_used_size);
  }
  process.stdout.write(String(most));`;

test('the old generation is collected sooner than by default', async () => {
  const largest = async (...more: string[]) => {
    const args = ['--no-warnings', '--input-type=module', '--eval', PROMOTING, ...more];
    return Number((await promisify(execFile)(process.execPath, args)).stdout);
  };
  expect(await largest()).toBeLessThan(0.8 * (await largest('unlimited')));
});
