import { submit } from '@shellfleet/mailbox';
import { sessionKeys, specKey } from '@shellfleet/protocol';
import { createSealer, sealPlace } from '@shellfleet/sealing';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { newSubmission } from '../support/mailbox-session.ts';
import type { TestFleet } from '../support/start-fleet.ts';

// A process that writes to Redis and lacks the seal key cannot use a sealed value in another place.

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet());
});
afterAll(() => endInspectedFleet(stack, inspect));

describe('a host', () => {
  test('refuses the spec of an earlier generation, and runs nothing of its commands', async () => {
    const keys = sessionKeys(stack.keyspace, 'default', 'spec');
    await (await stack.fleet.session('spec')).close();
    const old = String(await inspect.redis.get(specKey(keys)));
    const session = await stack.fleet.session('spec', { secrets: { TOKEN: 'hunter2-hunter2' } });
    await inspect.redis.set(specKey(keys), old);
    const result = await session.run('echo $TOKEN');
    expect(result).toMatchObject({ outcome: 'error', stdout: '', error: { code: 'SEAL_KEY_UNKNOWN' } });
  });

  // Wrong 7 of the seeds
  test('seals the error of a failed startup command, which readers receive whole', async () => {
    const session = await stack.fleet.session('failed', {
      startupCommands: ['echo printed-$((40 + 2)); : quoted-word; exit 5'],
    });
    const message =
      "Startup command 'echo printed-$((40 + 2)); : quoted-word; exit 5' failed with exit code 5. Its output: printed-42";
    const error = { code: 'SESSION_START_FAILED', message, retryable: true, context: {} };
    const result = await session.run('true');
    expect(result).toMatchObject({ outcome: 'error', error });
    expect(result).not.toHaveProperty('sealedReason');
    await expect(session.restart()).rejects.toMatchObject(error);
    const ends: unknown[] = [];
    for await (const event of session.events({ signal: AbortSignal.timeout(30_000) })) {
      if (event.type === 'command.completed') ends.push(event.data.error);
      if (ends.length === 2) break;
    }
    expect(ends).toEqual([error, error]);
    const stored = await everythingInRedis(inspect.redis, stack.namespace);
    expect(stored).toContain('SESSION_START_FAILED');
    expect(stored).not.toMatch(/quoted-word|printed-/);
  });

  test.each([
    ['of an earlier generation', { generation: '1' }, 'never'],
    ['whose submitter did not allow another run', {}, 'idempotent'],
  ] as const)('does not run a payload %s', async (what, sealedFor, retry) => {
    const id = what.replaceAll(' ', '-');
    const session = await stack.fleet.session(id);
    const keys = sessionKeys(stack.keyspace, 'default', id);
    const generation = String(await inspect.redis.hget(keys.state, 'generation'));
    const entryId = ulid();
    const entry = { id: entryId, generation, retry: 'never', inbox: '', ...sealedFor };
    const command = { type: 'command', script: 'touch /tmp/ran', timeoutMs: 1_000, killGraceMs: 0, encoding: 'utf8' };
    const payload = createSealer([stack.sealKey]).seal(JSON.stringify(command), sealPlace('payload', keys, entry));
    const next = session.run('ls /tmp/ran 2>/dev/null | wc -l');
    await submit(inspect.redis, keys, newSubmission(generation, { entryId, payload, retry, inbox: '' }));
    const result = await (await stack.fleet.command(`${id}.${entryId}`)).result();
    expect(result).toMatchObject({ outcome: 'error', error: { code: 'SEAL_KEY_UNKNOWN' } });
    expect(await next).toMatchObject({ stdout: '0\n' });
    expect(await session.run('ls /tmp/ran 2>/dev/null | wc -l')).toMatchObject({ stdout: '0\n' });
  });
});
