import assert from 'node:assert/strict';
import Mustache from 'mustache';

assert.equal(Mustache.render('{{a}} {{{a}}}', { a: '<i>' }), '&lt;i&gt; <i>');
assert.equal(Mustache.render('{{#list}}[{{.}}]{{/list}}', { list: [1, 2] }), '[1][2]');
assert.equal(Mustache.render('{{^list}}none{{/list}}', { list: [] }), 'none');
assert.equal(Mustache.render('{{>row}}', { x: 1 }, { row: 'x={{x}}' }), 'x=1');
assert.throws(() => Mustache.render('{{#open}}', {}), /Unclosed section/);
console.log('renders sections and partials, and escapes');
