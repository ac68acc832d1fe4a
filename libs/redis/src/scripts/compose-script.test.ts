import { describe, expect, test } from 'vitest';
import { composeScript } from './compose-script.ts';

const prelude = `-- Shared by all scripts.
local queue, state = KEYS[1], KEYS[2]
local prefix = ARGV[1]

-- Key of a record.
local function record_key(id) return prefix .. id end

local newest = false
-- Not for answers: see record_key.
local function emit(id)
  newest = redis.call('XADD', state, '*', 'c', id)
  return newest
end
`;

describe('composing a script', () => {
  test('adds the parts of the prelude that the script needs, directly or indirectly', () => {
    expect(composeScript(prelude, '-- emit is not called.\nreturn record_key(ARGV[2])\n')).toBe(`local prefix = ARGV[1]
local function record_key(id) return prefix .. id end
-- emit is not called.
return record_key(ARGV[2])
`);
    expect(composeScript(prelude, 'return emit(ARGV[2])\n')).toBe(`local queue, state = KEYS[1], KEYS[2]
local newest = false
local function emit(id)
  newest = redis.call('XADD', state, '*', 'c', id)
  return newest
end
return emit(ARGV[2])
`);
  });

  test('leaves a script without parts of the prelude as it is', () => {
    expect(composeScript(prelude, 'return 1\n')).toBe('return 1\n');
  });
});
