import { fleetKeys, tenantKeys } from '@shellfleet/protocol';
import { KeptSandboxes } from '@shellfleet/worker/test-support';
import { describe, expect, test } from 'vitest';
import { connectTestRedis, newNamespace } from '../support/mailbox-session.ts';

const silent = { warn() {}, info() {} } as never;
const AT = Date.UTC(2026, 0, 1);
const [LISTED, GONE, UNLISTED, OTHERS] = ['111111111111', '222222222222', '333333333333', '444444444444'];
const fieldOf = (sandbox: string) => `s ${sandbox}`;

function entry(hostId: string, containerId: string) {
  const keptAt = new Date(AT).toISOString();
  return { hostId, containerId, keptAt, reason: 'its last command ended as failure', generation: '3' };
}

describe('the list of kept containers', () => {
  // S0-38
  test('is corrected by each host for its own containers only', async () => {
    await using connected = await connectTestRedis();
    const { redis } = connected;
    const namespace = newNamespace();
    const fleet = fleetKeys(namespace);
    const { kept: list } = tenantKeys(namespace, 't');
    const [ours, theirs] = [entry('h1', 'c1'), entry('h2', 'c4')];
    const written = { [fieldOf(LISTED)]: ours, [fieldOf(GONE)]: entry('h1', 'c2'), [fieldOf(OTHERS)]: theirs };
    for (const [field, kept] of Object.entries(written)) await redis.hset(list, field, JSON.stringify(kept));
    const common = { session: { namespace, tenant: 't', session: 's' }, keptAt: AT };
    const listKept = async () => [
      { ...common, sandbox: LISTED, containerId: 'c1' },
      { ...common, sandbox: UNLISTED, containerId: 'c3' },
    ];
    await new KeptSandboxes({ redis, fleet, hostId: 'h1', sandboxes: { listKept }, logger: silent }).refresh();
    const listed = Object.entries(await redis.hgetall(list)).map(([field, text]) => [field, JSON.parse(text)]);
    expect(Object.fromEntries(listed)).toEqual({
      [fieldOf(LISTED)]: ours,
      [fieldOf(OTHERS)]: theirs,
      [fieldOf(UNLISTED)]: { ...entry('h1', 'c3'), reason: 'not known any more', generation: '' },
    });
  });
});
