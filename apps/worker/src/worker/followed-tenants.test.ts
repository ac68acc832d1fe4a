import { beforeEach, describe, expect, test, vi } from 'vitest';
import { FollowedTenants } from './followed-tenants.ts';

let tenants: FollowedTenants;
const subscriptions = { subscribe: vi.fn(), unsubscribe: vi.fn() };

beforeEach(() => {
  vi.clearAllMocks();
  tenants = new FollowedTenants();
});

describe('followed tenants', () => {
  test('are subscribed to with their first session, and left with their last', () => {
    tenants.start(subscriptions);
    tenants.follow('a');
    tenants.follow('a');
    tenants.leave('a');
    expect([subscriptions.subscribe.mock.calls, subscriptions.unsubscribe.mock.calls]).toEqual([[['a']], []]);
    tenants.leave('a');
    expect(subscriptions.unsubscribe.mock.calls).toEqual([['a']]);
  });

  test('are subscribed to at the start, and again after a reconnection', () => {
    tenants.follow('a');
    tenants.follow('b');
    tenants.leave('b');
    tenants.start(subscriptions);
    tenants.subscribeAgain();
    expect(subscriptions.subscribe.mock.calls).toEqual([['a'], ['a']]);
  });
});
