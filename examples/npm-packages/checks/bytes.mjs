import assert from 'node:assert/strict';
import bytes from 'bytes';

assert.equal(bytes.parse('1.5KB'), 1536);
assert.equal(bytes.parse('nonsense'), null);
assert.equal(bytes.format(1024 * 1024), '1MB');
assert.equal(bytes.format(1000, { unitSeparator: ' ' }), '1000 B');
assert.equal(bytes('1gb'), 2 ** 30);
console.log('reads and writes sizes');
