import assert from 'node:assert/strict';
import camelCase from 'camelcase';

assert.equal(camelCase('foo-bar_baz qux'), 'fooBarBazQux');
assert.equal(camelCase('XMLHttpRequest'), 'xmlHttpRequest');
assert.equal(camelCase('foo-bar', { pascalCase: true }), 'FooBar');
assert.equal(camelCase(['foo', 'bar']), 'fooBar');
assert.throws(() => camelCase(42), TypeError);
console.log('joins words into camelCase and PascalCase');
