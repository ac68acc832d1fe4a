import assert from 'node:assert/strict';
import minimist from 'minimist';

const options = { boolean: ['verbose'], alias: { n: 'number' }, string: ['id'] };
const parsed = minimist(['--verbose', 'file', '-n', '5', '--id=007', '--', '--raw'], options);
assert.equal(parsed.verbose, true);
assert.equal(parsed.number, 5);
assert.equal(parsed.id, '007');
assert.deepEqual(parsed._, ['file', '--raw']);
minimist(['--__proto__.polluted=yes']);
assert.equal({}.polluted, undefined);
console.log('reads flags, aliases and what stands behind --');
