import assert from 'node:assert/strict';
import semver from 'semver';

assert.equal(semver.gt('1.10.0', '1.9.9'), true);
assert.equal(semver.satisfies('1.2.3', '^1.2.0 || >=3'), true);
assert.equal(semver.satisfies('2.0.0-rc.1', '>=1.0.0'), false);
assert.equal(semver.inc('1.2.3', 'minor'), '1.3.0');
assert.equal(semver.maxSatisfying(['1.2.3', '1.9.0', '2.0.0'], '1.x'), '1.9.0');
assert.equal(semver.valid('1.2'), null);
assert.deepEqual(['1.0.0', '1.0.0-beta', '1.0.0-alpha.2'].sort(semver.compare), [
  '1.0.0-alpha.2',
  '1.0.0-beta',
  '1.0.0',
]);
console.log('orders versions and matches ranges');
