import assert from 'node:assert/strict';
import ini from 'ini';

const text = '; comment\nname=top\n[section]\nkey=value\nlist[]=1\nlist[]=2\n[section.sub]\nflag=true\n';
const parsed = ini.parse(text);
assert.equal(parsed.name, 'top');
assert.deepEqual(parsed.section.list, ['1', '2']);
assert.equal(parsed.section.sub.flag, true);
assert.deepEqual(ini.parse(ini.stringify(parsed)), parsed);
console.log('reads sections and lists, and writes them back');
