import { describe, expect, test } from 'vitest';
import { findHostUser } from './host-user.ts';

const find = (user: string | undefined, ourUid = 0, sharedUid = false) =>
  findHostUser({ user, sharedUid }, ourUid, ourUid);

describe('the user of host sessions', () => {
  test('accepts a name, a uid, or uid:gid', async () => {
    expect(await find('4711:4712')).toEqual({ uid: 4711, gid: 4712, isOurs: false });
    expect(await find('4711')).toEqual({ uid: 4711, gid: 4711, isOurs: false });
    expect(await find('nobody')).toEqual({ uid: 65534, gid: expect.any(Number), isOurs: false });
  });

  test.each([
    ['a setting without a name', undefined, 0, /user of their own/],
    ['a user that does not exist', 'no-such-user', 0, /has no user no-such-user/],
    ['root by name', 'root', 0, /never run as root/],
    ['root by number', '0', 0, /never run as root/],
    ["root's group", '4711:0', 0, /never run as root/],
    ["the worker's own uid", '1000', 1000, /worker's own.*SHELLFLEET_HOST_SHARED_UID=1/],
    ['another user, if the worker is not root', '4711', 1000, /not root \(uid 1000\)/],
  ])('refuses %s, with the reason', async (_title, user, ourUid, reason) => {
    await expect(find(user, ourUid)).rejects.toThrow(reason);
  });

  test("accepts the worker's own uid if the operator allows it, but never root", async () => {
    expect(await find(undefined, 1000, true)).toEqual({ uid: 1000, gid: 1000, isOurs: true });
    expect(await find('1000', 1000, true)).toEqual({ uid: 1000, gid: 1000, isOurs: true });
    await expect(find(undefined, 0, true)).rejects.toThrow(/never run as root/);
  });
});
