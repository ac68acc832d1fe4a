import assert from 'node:assert/strict';
import validator from 'validator';

assert.equal(validator.isEmail('someone@example.com'), true);
assert.equal(validator.isEmail('someone@'), false);
assert.equal(validator.isIP('2001:db8::1', 6), true);
assert.equal(validator.isCreditCard('4111 1111 1111 1111'), true);
assert.equal(validator.isCreditCard('4111 1111 1111 1112'), false);
assert.equal(validator.escape('<a href="x">'), '&lt;a href=&quot;x&quot;&gt;');
assert.throws(() => validator.isEmail(42), TypeError);
console.log('tells e-mail, addresses and card numbers from their look-alikes');
