import assert from 'node:assert/strict';
import ms from 'ms';

assert.equal(ms('2 days'), 172_800_000);
assert.equal(ms('1.5h'), 5_400_000);
assert.equal(ms(60_000), '1m');
assert.equal(ms(60_000, { long: true }), '1 minute');
assert.equal(ms('-3 min'), -180_000);
assert.equal(ms('soon'), undefined);
console.log('reads and writes durations');
