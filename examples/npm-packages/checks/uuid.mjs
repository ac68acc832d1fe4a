import assert from 'node:assert/strict';
import { parse, stringify, v4, v5, v7, validate, version } from 'uuid';

const id = v4();
assert.equal(validate(id), true);
assert.equal(version(id), 4);
assert.equal(stringify(parse(id)), id);
assert.equal(v5('www.example.com', v5.DNS), '2ed6657d-e927-568b-95e1-2665a8aea6a2');
const [first, second] = [v7({ msecs: 1 }), v7({ msecs: 2 })];
assert.equal(first < second, true);
assert.equal(validate('not-a-uuid'), false);
console.log('makes, names and orders ids');
