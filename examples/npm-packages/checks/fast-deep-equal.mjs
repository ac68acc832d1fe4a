import assert from 'node:assert/strict';
import equal from 'fast-deep-equal';

assert.equal(equal({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), true);
assert.equal(equal({ a: 1, b: 2 }, { b: 2, a: 1 }), true);
assert.equal(equal([1, 2], [2, 1]), false);
assert.equal(equal(Number.NaN, Number.NaN), true);
assert.equal(equal(/a/g, /a/i), false);
assert.equal(equal(new Date(0), new Date(0)), true);
console.log('compares nested values, NaN, dates and patterns');
