import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { escapeRows, type Outside, openOutside, tryToEscape } from '../support/escape-probes.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// A list of ways out of a sandbox, tried inside the real ones. docs/policy.md has the list, and what each policy promises.

let stack: TestFleet;
let outside: Outside;
beforeAll(async () => {
  const policies = isRoot ? 'docker,host' : 'docker';
  stack = await startFleet({ env: { SHELLFLEET_POLICIES: policies, SHELLFLEET_HOST_USER: '4711' } });
  outside = await openOutside({
    sockets: [inject('dockerHost').replace('unix://', '')],
    processes: [inject('programs').worker],
    secrets: ['SHELLFLEET_REDIS_URL', stack.sealKey],
  });
});
afterAll(async () => {
  await outside?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
});

/** The table of the page: for each row whether the policy promises that it fails. */
async function promises(policy: string): Promise<Record<string, boolean>> {
  const page = await readFile(new URL('../../docs/policy.md', import.meta.url), 'utf8');
  const rows = (page.split('## Ways out')[1] ?? '').split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const column = cells[0]?.indexOf(policy) ?? -1;
  return Object.fromEntries(cells.slice(1).map((line) => [line[1], line[column]?.startsWith('fails') === true]));
}

async function escapesOf(policy: 'docker' | 'host', spec = {}): Promise<Record<string, string>> {
  const session = await stack.fleet.session(`escapes-${policy}-${Object.keys(spec).length}`, { policy, ...spec });
  const reached = await tryToEscape(session, outside);
  await session.close();
  expect(Object.keys(reached).sort()).toEqual(await escapeRows());
  return Object.fromEntries(Object.entries(reached).filter(([, what]) => what !== ''));
}

describe('The ways out of a sandbox', () => {
  test.each([{}, { policy: { type: 'docker' as const, readOnlyRootfs: true } }])(
    'all fail under docker: %j',
    async (spec) => {
      expect(await escapesOf('docker', spec)).toEqual({});
      expect(Object.values(await promises('docker'))).not.toContain(false);
    },
  );

  test.runIf(isRoot)('fail under host where the page promises it, and the page names every row', async () => {
    const promised = await promises('host');
    expect(Object.keys(promised).sort()).toEqual(await escapeRows());
    const reached = await escapesOf('host');
    expect(Object.fromEntries(Object.entries(reached).filter(([row]) => promised[row]))).toEqual({});
    // What is there to be found is found: the probes fail elsewhere because of the sandbox.
    expect(reached).toMatchObject({ network: expect.any(String), 'abstract sockets outside': 'connected' });
  });
});
