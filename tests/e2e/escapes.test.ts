import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { escapeRows, type Outside, openOutside, promisesOf, tryToEscape } from '../support/escape-probes.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// A list of ways out of a sandbox, tried inside the real ones. docs/sandbox-limits.md has the list, and what each
// policy promises.

let stack: TestFleet;
let outside: Outside;
beforeAll(async () => {
  const policies = isRoot ? 'docker,host,bubblewrap' : 'docker';
  stack = await startFleet({ env: { SHELLFLEET_POLICIES: policies, SHELLFLEET_HOST_USER: '4721' } });
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

async function escapesOf(policy: 'docker' | 'host' | 'bubblewrap', spec = {}): Promise<Record<string, string>> {
  const session = await stack.fleet.session(`escapes-${policy}-${Object.keys(spec).length}`, { policy, ...spec });
  const reached = await tryToEscape(session, outside);
  await session.close();
  expect(Object.keys(reached).sort()).toEqual(await escapeRows());
  return Object.fromEntries(Object.entries(reached).filter(([, what]) => what !== ''));
}

describe('ways out of a sandbox', () => {
  test.each([{}, { policy: { type: 'docker' as const, readOnlyRootfs: true } }])(
    'all fail under docker: %j',
    async (spec) => {
      expect(await escapesOf('docker', spec)).toEqual({});
      expect(Object.values(await promisesOf('docker'))).not.toContain(false);
    },
  );

  test.runIf(isRoot)('all fail under bubblewrap', async () => {
    expect(await escapesOf('bubblewrap')).toEqual({});
    expect(Object.values(await promisesOf('bubblewrap'))).not.toContain(false);
  });

  test.runIf(isRoot)('fail under policy host where the page promises it; the page names every way', async () => {
    const promised = await promisesOf('host');
    expect(Object.keys(promised).sort()).toEqual(await escapeRows());
    const reached = await escapesOf('host');
    expect(Object.fromEntries(Object.entries(reached).filter(([row]) => promised[row]))).toEqual({});
    // Policy host leaves these ways open, and the probes find them. So their failures elsewhere are due to the sandbox.
    expect(reached).toMatchObject({ network: expect.any(String), 'abstract sockets outside': 'connected' });
  });
});
