import assert from 'node:assert/strict';
import pLimit from 'p-limit';

const limit = pLimit(3);
let running = 0;
let most = 0;
const work = async (value) => {
  running += 1;
  most = Math.max(most, running);
  await new Promise((resolve) => setTimeout(resolve, 2));
  running -= 1;
  return value * 2;
};
const results = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((value) => limit(work, value)));
assert.deepEqual(results, [2, 4, 6, 8, 10, 12, 14]);
assert.equal(most, 3);
assert.equal(limit.activeCount, 0);
await assert.rejects(
  limit(() => Promise.reject(new Error('passed on'))),
  /passed on/,
);
assert.throws(() => pLimit(0), TypeError);
console.log('runs seven jobs, three at a time');
