import { describe, expect, test } from 'vitest';
import { type Address, createResolveName } from './resolve-name.ts';

const never = new AbortController().signal;
const found: Address[] = [{ address: '192.0.2.1', family: 4 }];

describe('resolveName', () => {
  test('lookups without a reply, even after an abort, do not delay those of another session', async () => {
    const pending = Promise.withResolvers<Address[]>();
    const asked: string[] = [];
    const slow = createResolveName((name) => {
      asked.push(name);
      return pending.promise;
    });
    const giveUp = new AbortController();
    const first = slow('first.test', giveUp.signal);
    const others = ['second.test', 'third.test'].map((name) => slow(name, never));
    await expect.poll(() => asked).toEqual(['first.test']);
    giveUp.abort(new Error('given up'));
    await expect(first).rejects.toThrow('given up');
    expect(await createResolveName(async () => found)('other.test', never)).toEqual(found);
    expect(asked).toEqual(['first.test']);
    pending.resolve(found);
    expect(await Promise.all(others)).toEqual([found, found]);
  });

  test('does not look up a name whose request was aborted', async () => {
    const resolveName = createResolveName(() => Promise.reject(new Error('it was asked for')));
    await expect(resolveName('a.test', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  });

  test("resolves a name by the host's resolver", async () => {
    const addresses = await createResolveName()('localhost', never);
    expect(addresses.every(({ address, family }) => (family === 6 ? address === '::1' : address === '127.0.0.1'))).toBe(
      true,
    );
    expect(addresses.length).toBeGreaterThan(0);
  });
});
