import assert from 'node:assert/strict';
import { marked } from 'marked';

assert.equal(marked.parse('# Title').trim(), '<h1>Title</h1>');
assert.equal(marked.parseInline('**bold** and `code`'), '<strong>bold</strong> and <code>code</code>');
assert.match(marked.parse('- a\n- b'), /<ul>\s*<li>a<\/li>\s*<li>b<\/li>\s*<\/ul>/);
assert.match(marked.parse('| a |\n|---|\n| 1 |'), /<table>[\s\S]*<td>1<\/td>/);
assert.equal(marked.lexer('> quote')[0].type, 'blockquote');
console.log('turns Markdown into HTML');
