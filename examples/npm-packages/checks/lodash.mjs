import assert from 'node:assert/strict';
import _ from 'lodash';

assert.deepEqual(_.chunk([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]);
assert.deepEqual(_.groupBy(['one', 'two', 'three'], 'length'), { 3: ['one', 'two'], 5: ['three'] });
assert.equal(_.get({ a: [{ b: { c: 3 } }] }, 'a[0].b.c'), 3);
const source = { deep: { list: [1] } };
const copy = _.cloneDeep(source);
copy.deep.list.push(2);
assert.deepEqual(source.deep.list, [1]);
assert.equal(_.template('Hello <%- name %>')({ name: '<b>' }), 'Hello &lt;b&gt;');
assert.equal({}.polluted, undefined);
_.merge({}, JSON.parse('{"__proto__":{"polluted":true}}'));
assert.equal({}.polluted, undefined);
console.log('chunks, groups, clones, and pollutes no prototype');
