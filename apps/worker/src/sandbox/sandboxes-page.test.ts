import { readdir, readFile } from 'node:fs/promises';
import { POLICY_NAMES } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';

const docs = new URL('../../../../docs/', import.meta.url);
const page = await readFile(new URL('sandboxes.md', docs), 'utf8');
const section = page.split('## Which policy')[1]?.split('\n## ')[0] ?? '';

describe('docs about sandboxes', () => {
  // S0-08
  test('the page names whose commands each policy is for', () => {
    const rows = [...section.matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(([, name]) => name);
    expect(rows).toEqual(expect.arrayContaining([...POLICY_NAMES]));
  });

  // S0-49
  test('the page names what the isolation of a container depends on', () => {
    for (const word of ['kernel', 'rootless', 'userns-remap', 'AppArmor', 'SELinux', 'runtime'])
      expect(section).toContain(word);
  });

  // S0-30
  test('the page links to the maker of each third-party sandbox', async () => {
    expect(page).toContain('the sandbox of the [Codex CLI](https://github.com/openai/codex)');
    expect(page).toContain('[bubblewrap](https://github.com/containers/bubblewrap)');
    for (const name of (await readdir(docs)).filter((file) => file.endsWith('.md')))
      expect({ name, text: await readFile(new URL(name, docs), 'utf8') }).not.toMatchObject({
        text: expect.stringMatching(/Anthropic|Seatbelt/),
      });
  });
});
