import assert from 'node:assert/strict';
import colors from 'picocolors';

const on = colors.createColors(true);
const off = colors.createColors(false);
assert.equal(on.red('x'), '\u001b[31mx\u001b[39m');
assert.equal(on.bold(on.blue('x')), '\u001b[1m\u001b[34mx\u001b[39m\u001b[22m');
assert.equal(off.red('x'), 'x');
assert.equal(colors.red('x'), 'x'); // stdout of a session is no terminal
console.log('colours where it should, and only there');
