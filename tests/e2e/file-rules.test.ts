import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';

// File operations and tool calls are judged as words, on hosts whose operator has rules about them.

const RULES = `
rules:
  - { pattern: [[files.write, files.remove], /workspace/kept], decision: forbid, justification: The auditor reads it. }
  - { pattern: [files.read, /workspace/hidden], decision: forbid }
  - { pattern: [tool, echo], decision: forbid, justification: It echoes. }
`;
const folder = mkdtempSync(join(tmpdir(), 'sf-file-rules-'));
let stack: TestFleet;
let ids = 0;
const open = (spec = {}) => stack.fleet.session(`files-${++ids}`, spec);

beforeAll(async () => {
  writeFileSync(join(folder, 'rules.yaml'), RULES);
  writeFileSync(join(folder, 'config.yaml'), `rules: [${join(folder, 'rules.yaml')}]\n`);
  const SHELLFLEET_CONFIG = join(folder, 'config.yaml');
  stack = await startFleet({ env: { SHELLFLEET_CONFIG, SHELLFLEET_TOOLS: toolModules('everyday') } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const KEPT = 'The rule `files.write|files.remove /workspace/kept` forbids';

test.each([{ ordered: false }, { ordered: true }])(
  'an operation that a rule forbids is denied with the rule and its justification, %j',
  async ({ ordered }) => {
    const { files } = await open();
    const denied = (what: string) => ({
      code: 'FILE_DENIED',
      message: expect.stringContaining(`${KEPT} \`${what}\`. The auditor reads it.`),
    });
    await expect(files.write('/workspace/kept/a', 'a', { ordered })).rejects.toMatchObject(
      denied('files.write /workspace/kept/a'),
    );
    await expect(files.remove('/workspace', { ordered })).rejects.toMatchObject(denied('files.remove /workspace'));
    await files.write('/workspace/a', 'a', { ordered });
    await expect(files.rename('/workspace/a', '/workspace/b/../kept', { ordered })).rejects.toMatchObject(
      denied('files.rename /workspace/a /workspace/kept'),
    );
    expect(await files.readText('/workspace/a', { ordered })).toBe('a');
    expect((await files.list('/workspace', { ordered })).map(({ name }) => name)).toEqual(['a']);
  },
);

test('a directory is uploaded without the file that a rule forbids: its group is denied as a whole', async () => {
  const { files } = await open();
  const local = join(folder, 'tree');
  mkdirSync(join(local, 'kept'), { recursive: true });
  writeFileSync(join(local, 'kept', 'a'), 'a');
  await expect(files.upload(local, '/workspace')).rejects.toMatchObject({
    code: 'FILE_DENIED',
    message: expect.stringContaining(`${KEPT} \`files.write /workspace/kept/a\``),
  });
  expect(await files.list('/workspace')).toEqual([]);
});

test('a tool that a rule forbids is not called, and another one is', async () => {
  expect(await stack.fleet.tools.call('echo', {})).toMatchObject({
    error: { code: 'denied', message: expect.stringContaining('The rule `tool echo` forbids `tool echo`. It echoes.') },
  });
  expect(await stack.fleet.tools.call('add', { a: 1, b: 2 })).toMatchObject({ ok: true, output: { sum: 3 } });
});
