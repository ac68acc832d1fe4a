import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const LIMITS = JSON.stringify(new URL('heap-limits.ts', import.meta.url).href);
/** Keeps up to 600,000 objects alive, as a worker under load would, and prints the largest size of its young generation. */
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
  process.stdout.write(\`\${Math.min(...sizes)} \${Math.max(...sizes)}\`);`;

test('the young generation has its size from the start, and keeps it under load', async () => {
  const args = ['--no-warnings', '--input-type=module', '--eval', PROGRAM];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const [least, most] = stdout.split(' ').map(Number);
  expect(least).toBe(32 * 1024 * 1024);
  expect(most).toBe(32 * 1024 * 1024);
});
