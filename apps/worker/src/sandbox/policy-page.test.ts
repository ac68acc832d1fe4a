import { readFile } from 'node:fs/promises';
import { POLICY_NAMES } from '@shellfleet/protocol';
import { expect, test } from 'vitest';

const page = await readFile(new URL('../../../../docs/policy.md', import.meta.url), 'utf8');
const section = page.split('## Which policy')[1]?.split('\n## ')[0] ?? '';

test('the page says whose commands each policy is for (S0-08)', () => {
  const rows = [...section.matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, name]) => name);
  expect(rows).toEqual(expect.arrayContaining([...POLICY_NAMES]));
});

test('the page says what the isolation of a container depends on (S0-49)', () => {
  for (const word of ['kernel', 'rootless', 'userns-remap', 'AppArmor', 'SELinux', 'runtime'])
    expect(section).toContain(word);
});
