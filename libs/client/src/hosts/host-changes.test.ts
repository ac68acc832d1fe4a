import type { HostInfo } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { hostChanges } from './host-changes.ts';

const host = (id: string, state: HostInfo['state'], cordoned?: true): HostInfo =>
  ({ id, state, ...(cordoned && { cordoned }) }) as HostInfo;

describe('the changes of hosts', () => {
  test.each<[string, HostInfo[], HostInfo[], string[]]>([
    ['a host that comes', [], [host('a', 'up')], ['host.up a']],
    ['a host that comes and drains', [], [host('a', 'draining')], ['host.up a', 'host.draining a']],
    ['a host that leaves', [host('a', 'up')], [], ['host.left a']],
    ['a silent host', [host('a', 'up')], [host('a', 'unreachable')], ['host.unreachable a']],
    ['a host that was silent', [host('a', 'unreachable')], [host('a', 'up')], ['host.up a']],
    ['a host that was never seen up', [], [host('a', 'unreachable')], []],
    ['a drained host', [host('a', 'up')], [host('a', 'draining')], ['host.draining a']],
    ['a host without its drain', [host('a', 'draining')], [host('a', 'up')], ['host.drain-undone a']],
    ['a cordoned host', [host('a', 'up')], [host('a', 'up', true)], ['host.cordoned a']],
    ['an uncordoned host', [host('a', 'up', true)], [host('a', 'up')], ['host.uncordoned a']],
    ['nothing', [host('a', 'draining', true)], [host('a', 'draining', true)], []],
  ])('are reported for %s', (_what, before, now, expected) => {
    expect(hostChanges(before, now).map(({ type, hostId }) => `${type} ${hostId}`)).toEqual(expected);
  });
});
