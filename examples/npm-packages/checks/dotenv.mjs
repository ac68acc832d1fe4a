import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import dotenv from 'dotenv';

const parsed = dotenv.parse('# comment\nPLAIN=value\nQUOTED="two words"\nSINGLE=\'a\\nb\'\nMULTI="a\\nb"\nEMPTY=\n');
assert.deepEqual(parsed, { PLAIN: 'value', QUOTED: 'two words', SINGLE: 'a\\nb', MULTI: 'a\nb', EMPTY: '' });
writeFileSync('example.env', 'FROM_FILE=yes\nHOME=/elsewhere\n');
const home = process.env.HOME;
dotenv.config({ path: 'example.env', quiet: true });
assert.equal(process.env.FROM_FILE, 'yes');
assert.equal(process.env.HOME, home ?? '/elsewhere');
console.log('reads a file and overwrites nothing that is set');
