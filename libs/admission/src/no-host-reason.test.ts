import { expect, test } from 'vitest';
import { hostsFor, noHostReason } from './no-host-reason.ts';

const host = (policies: string[], draining = false) => ({ policies, draining });

test.each([
  ['no host is alive', [], 'No host is alive.'],
  [
    'no host offers the policy',
    [host(['docker']), host(['docker'])],
    "No live host offers the policy 'host'; they offer 'docker'.",
  ],
  ['no host offers any', [host([])], "No live host offers the policy 'host'; they offer none."],
  [
    'every host that offers it is draining',
    [host(['docker']), host(['docker', 'host'], true)],
    "Every live host that offers the policy 'host' is draining.",
  ],
  ['a host offers it', [host(['docker']), host(['host'])], undefined],
])('the reason when %s', (_title, hosts, reason) => {
  expect(noHostReason('host', hosts)).toBe(reason);
});

test('only hosts that offer the class and are not draining count for it', () => {
  const hosts = [host(['docker']), host(['host']), host(['host'], true), host(['docker', 'host', 'unheard-of'])];
  expect(hostsFor('host', hosts)).toEqual([hosts[1], hosts[3]]);
});
