import assert from 'node:assert/strict';
import merge from 'deepmerge';

const left = { list: [1], nested: { a: 1, b: 2 } };
const merged = merge(left, { list: [2], nested: { b: 3 } });
assert.deepEqual(merged, { list: [1, 2], nested: { a: 1, b: 3 } });
assert.deepEqual(left, { list: [1], nested: { a: 1, b: 2 } });
const replaced = merge(left, { list: [9] }, { arrayMerge: (_before, after) => after });
assert.deepEqual(replaced.list, [9]);
assert.deepEqual(merge.all([{ a: 1 }, { b: 2 }, { c: 3 }]), { a: 1, b: 2, c: 3 });
console.log('merges deeply and leaves its input alone');
