import assert from 'node:assert/strict';
import { produce } from 'immer';

const before = { done: { a: 1 }, todo: ['x'] };
const after = produce(before, (draft) => {
  draft.todo.push('y');
});
assert.deepEqual(before.todo, ['x']);
assert.deepEqual(after.todo, ['x', 'y']);
assert.equal(after.done, before.done);
assert.equal(
  produce(before, () => {}),
  before,
);
assert.throws(() => after.todo.push('z'), TypeError);
console.log('changes a copy, shares the rest and freezes it');
