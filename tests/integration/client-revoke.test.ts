import { confirmAnswer } from '@shellfleet/mailbox';
import { approvalGrantKey, approvalKeys, fleetKeys, hostBeatSchema, hostKeys, parseWakeUp } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';

// What a revocation waits for, with hosts that this test plays. approvals-revoke.test.ts measures its time with real
// hosts.

/** How long an unconfirmed revocation waits (docs/approvals.md), less the moment by which a timer may fire early. */
const HOLDS_AFTER_MS = 2_000 - 5;

const BEAT = hostBeatSchema.parse({
  ...{ slots: 1, free: 1, policies: ['docker'], version: '0', boot: 'b', draining: false },
  defaultImage: 'slim',
});

describe('a revocation', () => {
  test.each<[string, { up: string[]; confirming: string[] }]>([
    ['only one of two live hosts confirms it', { up: ['h1', 'h2'], confirming: ['h1'] }],
    ['the host that confirms it is down', { up: [], confirming: ['h1'] }],
  ])('resolves after 2 s where %s', async (_where, hosts) => {
    await using stage = await setClientStage();
    const { redis, keyspace } = stage;
    const keys = approvalKeys(keyspace, 'default');
    const fleet = fleetKeys(keyspace);
    const id = `${'0'.repeat(20)}.${'1'.repeat(12)}`;
    const grant = approvalGrantKey(keys, id);
    await redis.set(grant, 'sealed');
    for (const host of hosts.up) {
      await redis.zadd(fleet.hosts, Date.now(), host);
      await redis.set(hostKeys(keyspace, host).alive, JSON.stringify(BEAT));
    }
    const listener = redis.duplicate();
    await listener.subscribe(fleet.sessionsWakeUps);
    listener.on('message', async (_channel, message) => {
      const wakeUp = parseWakeUp(message);
      if (wakeUp?.type !== 'answers' || wakeUp.confirm === undefined) return;
      await redis.multi().xdel(keys.answers, wakeUp.confirm).del(grant).exec();
      for (const host of hosts.confirming) await confirmAnswer(redis, keys, wakeUp.confirm, host);
    });
    const connected = await stage.connect();
    const from = performance.now();
    await connected.approvals.revoke(id);
    expect(performance.now() - from).toBeGreaterThanOrEqual(HOLDS_AFTER_MS);
    expect(await redis.exists(grant)).toBe(0);
    listener.disconnect();
  });
});
