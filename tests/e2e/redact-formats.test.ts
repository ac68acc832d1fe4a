import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ env: { SHELLFLEET_ALLOW_UNREDACTED: '1' } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

// Put together here, so that no scanner takes this file for a leak.
const KEY = `AKIA${'IOSFODNN7EXAMPLE'}`;
const URL_WITH_PASSWORD = `postgres://u:${'hunter22'}@db/x`;
const MAKE = `git init -q repo && cd repo && git config user.email a@b && git config user.name a && echo first > f && git add f && git commit -qm a
printf 'key = "%s"\\nurl = "%s"\\n' ${KEY} ${URL_WITH_PASSWORD} > f; git diff`;

test('a patch with fixtures of well-known formats arrives unchanged and applies', async () => {
  const session = await stack.fleet.session('patch', { redactFormats: false });
  const made = await session.run(MAKE);
  expect(made).toMatchObject({ outcome: 'success', redactions: {} });
  expect(made.stdout).toContain(KEY);
  expect(made.stdout).toContain(URL_WITH_PASSWORD);
  const applied = await session.run('git checkout -q f && git apply - && cat f', { stdin: made.stdout });
  expect(applied).toMatchObject({ outcome: 'success', stdout: `key = "${KEY}"\nurl = "${URL_WITH_PASSWORD}"\n` });
  await session.close();
});

test('its secrets are replaced all the same, and its own rules hold', async () => {
  const session = await stack.fleet.session('rules', {
    redactFormats: false,
    secrets: { TOKEN: 'a-secret-of-its-own' },
    redaction: [{ type: 'email', strategy: 'redact' }],
  });
  expect(await session.run(`echo "$TOKEN ${KEY} someone@example.org"`)).toMatchObject({
    stdout: `[REDACTED_SECRET] ${KEY} [REDACTED_EMAIL]\n`,
    redactions: { secret: 1, email: 1 },
  });
  await session.close();
});

test('without it the formats are replaced', async () => {
  const session = await stack.fleet.session('usual');
  expect((await session.run(MAKE)).stdout).not.toContain(KEY);
  await session.close();
});
