import { expect, test } from 'vitest';
import { OUTPUT_PROFILES } from './output-profiles.ts';
import { sessionSpecSchema } from './session.ts';

test('S0-05: a command has 30 s, starting 30 s and ending 10 s; the profile of that seed cuts at 100 lines and at as many bytes as can be asked for', () => {
  const { commandTimeoutMs, startupTimeoutMs, terminationTimeoutMs } = sessionSpecSchema.parse({});
  expect({ commandTimeoutMs, startupTimeoutMs, terminationTimeoutMs }).toEqual({
    commandTimeoutMs: 30_000,
    startupTimeoutMs: 30_000,
    terminationTimeoutMs: 10_000,
  });
  const { output } = sessionSpecSchema.parse({ output: OUTPUT_PROFILES.langchain });
  // The largest bound that a session may ask for.
  expect(output).toMatchObject({ maxLines: 100, maxBytes: 1_048_576 });
  const refused = sessionSpecSchema.safeParse({ output: { maxBytes: 1_048_577 } });
  expect(refused.error?.issues[0]?.message).toBe('must be at most 1048576');
});

test.each([
  [{}, undefined],
  [{ team: 'build', 'example.org/arch': 'arm64', n: '1' }, undefined],
  [{ team: '' }, 'must have a name and a value of 1 to 63'],
  [{ team: 'a b' }, 'must have a name and a value of 1 to 63'],
  [{ team: 'x'.repeat(64) }, 'must have a name and a value of 1 to 63'],
  [{ '-team': 'build' }, 'must have a name and a value of 1 to 63'],
  [Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`label${n}`, 'x'])), 'holds 33 labels; the limit is 32'],
])('labels are short names and values, at most 32: %j', (labels, refusal) => {
  const { success, error } = sessionSpecSchema.safeParse({ labels });
  expect(success).toBe(refusal === undefined);
  if (refusal !== undefined) expect(error?.message).toContain(refusal);
});
