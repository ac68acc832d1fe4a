import assert from 'node:assert/strict';
import { parse, parseDocument, stringify } from 'yaml';

const text = 'base: &base\n  a: 1\nlist:\n  - one\n  - two: [3, 4]\ncopy: *base\nblock: |\n  two\n  lines\n';
assert.deepEqual(parse(text), {
  base: { a: 1 },
  list: ['one', { two: [3, 4] }],
  copy: { a: 1 },
  block: 'two\nlines\n',
});
const value = { text: 'yes', nested: [{ a: null }] };
assert.deepEqual(parse(stringify(value)), value);
const document = parseDocument('# kept\na: 1\n');
document.set('a', 2);
assert.equal(document.toString(), '# kept\na: 2\n');
assert.throws(() => parse('a: [1'), { name: 'YAMLParseError' });
console.log('reads anchors and blocks, keeps comments');
