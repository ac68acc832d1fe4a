import assert from 'node:assert/strict';
import { customAlphabet, nanoid } from 'nanoid';

assert.match(nanoid(), /^[A-Za-z0-9_-]{21}$/);
assert.equal(nanoid(5).length, 5);
assert.equal(new Set(Array.from({ length: 10_000 }, () => nanoid())).size, 10_000);
assert.match(customAlphabet('abc', 40)(), /^[abc]{40}$/);
console.log('makes 10,000 ids and no two alike');
