import { describe, expect, test } from 'vitest';
import { sayRedactedFormats } from './redacted-formats.ts';

async function saidOf(...all: Record<string, number>[]) {
  const said: string[] = [];
  await sayRedactedFormats(
    { say: (text) => said.push(text) },
    all.map((redactions) => ({ redactions })),
  );
  return said;
}

const NEXT = 'A session with --keep-formats shows them, where its host allows it.';

describe('the count of redacted formats', () => {
  test('adds up the replaced formats of all commands by kind', async () => {
    expect(await saidOf({ github_token: 1 })).toEqual([
      `1 token of a well-known format was replaced in the output (github_token 1). ${NEXT}`,
    ]);
    expect(await saidOf({ github_token: 1, secret: 4 }, {}, { private_key: 1, github_token: 2, email: 3 })).toEqual([
      `4 tokens of well-known formats were replaced in the output (github_token 3, private_key 1). ${NEXT}`,
    ]);
  });

  test('leaves out secrets and the rules of a session', async () => {
    expect(await saidOf({}, { secret: 2 }, { email: 1 })).toEqual([]);
  });
});
