import type { ApiKeyInfo } from '@shellfleet/client';
import { apiKeyText, ShellfleetError } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Access, openAccess } from './access.ts';
import type { Principal } from './principal.ts';

const ID = '0123456789abcdef';
const KEY = apiKeyText(ID, 's'.repeat(43));
const info: ApiKeyInfo = { id: ID, name: 'ci', tenant: 'acme', scopes: ['submit'], createdAt: '2026-01-01T00:00:00Z' };

/** Keys in memory that count the calls. */
class FakeKeys {
  readonly stored = new Map<string, ApiKeyInfo>([[KEY, info]]);
  readonly noted: string[] = [];
  finds = 0;
  looks: string[][] = [];
  failure?: Error;

  async find(key: string): Promise<ApiKeyInfo | undefined> {
    this.finds++;
    if (this.failure !== undefined) throw this.failure;
    return this.stored.get(key);
  }

  async findWorking(ids: readonly string[]): Promise<Set<string>> {
    this.looks.push([...ids]);
    if (this.failure !== undefined) throw this.failure;
    return new Set([...this.stored.values()].map(({ id }) => id).filter((id) => ids.includes(id)));
  }

  async noteUse(id: string): Promise<void> {
    this.noted.push(id);
  }
}

let keys: FakeKeys;
let access: Access;
let logged: string[];
beforeEach(() => {
  vi.useFakeTimers();
  keys = new FakeKeys();
  logged = [];
  access = openAccess({ keys }, { log: { warn: (_fields, event) => void logged.push(event) } });
});
afterEach(() => {
  access.close();
  vi.useRealTimers();
});

const outage = () => new ShellfleetError('QUEUE_UNAVAILABLE', 'Redis gave no usable answer.');

describe('authentication by an API key', () => {
  test('returns caller, tenant and scopes of the key', async () => {
    expect(await access.authenticate(KEY)).toEqual({
      caller: { id: `key-${ID}`, name: 'ci' },
      tenant: 'acme',
      scopes: new Set(['submit']),
      keyId: ID,
    });
  });

  test('refuses what looks like a token of an issuer if none is set', async () => {
    expect(await access.authenticate('e30.e30.e30')).toBeUndefined();
    expect(keys.finds).toBe(0);
  });

  test.each(['', 'secret', `${KEY}x`, apiKeyText(ID, 'S'.repeat(43)), apiKeyText('f'.repeat(16), 's'.repeat(43))])(
    'refuses %s',
    async (token) => {
      expect(await access.authenticate(token)).toBeUndefined();
    },
  );

  test('asks Redis once for many calls, and again after half a second', async () => {
    await Promise.all(Array.from({ length: 100 }, () => access.authenticate(KEY)));
    await vi.advanceTimersByTimeAsync(499);
    await access.authenticate(KEY);
    expect(keys.finds).toBe(1);
    keys.stored.clear();
    await vi.advanceTimersByTimeAsync(1);
    expect(await access.authenticate(KEY)).toBeUndefined();
    expect(keys.finds).toBe(2);
  });

  test('refuses a key that expires while it is kept', async () => {
    keys.stored.set(KEY, { ...info, expiresAt: new Date(Date.now() + 100).toISOString() });
    expect(await access.authenticate(KEY)).toMatchObject({ expiresAt: Date.now() + 100 });
    await vi.advanceTimersByTimeAsync(100);
    expect(await access.authenticate(KEY)).toBeUndefined();
    expect(keys.finds).toBe(1);
  });

  test('rejects while Redis is away, and keeps no failure', async () => {
    keys.failure = outage();
    await expect(access.authenticate(KEY)).rejects.toMatchObject({ code: 'QUEUE_UNAVAILABLE' });
    delete keys.failure;
    expect(await access.authenticate(KEY)).toMatchObject({ tenant: 'acme' });
  });

  test('refuses a key that this process cannot open, and logs that once a minute', async () => {
    keys.failure = new ShellfleetError('SEAL_KEY_UNKNOWN', 'The API key does not open.');
    const others = Array.from({ length: 5 }, (_, n) => apiKeyText(ID, String(n).repeat(43)));
    for (const key of [KEY, ...others]) expect(await access.authenticate(key)).toBeUndefined();
    expect(logged).toEqual(['key.unreadable']);
  });

  test('records the use of a key once a minute', async () => {
    for (let second = 0; second < 60; second++) {
      await access.authenticate(KEY);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(keys.noted).toEqual([ID]);
    await access.authenticate(KEY);
    expect(keys.noted).toEqual([ID, ID]);
  });

  test('records no use of a wrong key', async () => {
    await access.authenticate(apiKeyText(ID, 'S'.repeat(43)));
    expect(keys.noted).toEqual([]);
  });
});

const open = async (token = KEY) => access.validity((await access.authenticate(token)) as Principal);

describe('the validity of the tokens of open streams', () => {
  test('ends within a second after the key was revoked', async () => {
    const [one, other] = [await open(), await open()];
    await vi.advanceTimersByTimeAsync(60_000);
    expect([one.signal.aborted, other.signal.aborted]).toEqual([false, false]);
    keys.stored.clear();
    await vi.advanceTimersByTimeAsync(400);
    expect([one.signal.aborted, other.signal.aborted]).toEqual([true, true]);
    expect(one.signal.reason).toMatchObject({
      code: 'UNAUTHORIZED',
      message: expect.stringContaining('ci was revoked'),
    });
  });

  test('ends when the token expires, also while Redis is away', async () => {
    keys.stored.set(KEY, { ...info, expiresAt: new Date(Date.now() + 2_000).toISOString() });
    const { signal } = await open();
    keys.failure = outage();
    await vi.advanceTimersByTimeAsync(1_999);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(401);
    expect(signal.aborted).toBe(true);
  });

  test('outlasts an outage of Redis, which has one line in the log', async () => {
    const { signal } = await open();
    keys.failure = outage();
    await vi.advanceTimersByTimeAsync(10_000);
    delete keys.failure;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(signal.aborted).toBe(false);
    expect(logged).toEqual(['keys.unobserved']);
  });

  test('needs one timer and one call for a thousand streams, and none without streams', async () => {
    const opened = await Promise.all(Array.from({ length: 1_000 }, () => open()));
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(400);
    expect(keys.looks).toEqual([[ID]]);
    for (const validity of opened) validity[Symbol.dispose]();
    expect(vi.getTimerCount()).toBe(0);
  });
});
