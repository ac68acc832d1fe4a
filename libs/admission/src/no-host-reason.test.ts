import { expect, test } from 'vitest';
import { hostsFor, noHostReason } from './no-host-reason.ts';

const host = (policies: string[], draining = false, problems: string[] = []) => ({
  ...{ policies, draining, problems },
  ...{
    sealKeys: ['key'],
    schema: 1,
    allow: { modes: ['read-only'], networks: ['restricted', 'limited'], runtimes: ['kata'] },
  },
});

test.each([
  [
    'no host is alive',
    [],
    'No host of this fleet is up. Start one: `shellfleet up`, or `shellfleet worker` on another machine.',
  ],
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
  [
    'every host that offers it has a problem or is draining',
    [host(['docker']), host(['host'], true), host(['host'], false, ['Its engine does not answer.'])],
    "No live host that offers the policy 'host' takes sessions now: Its engine does not answer.",
  ],
  ['a host offers it', [host(['docker']), host(['host'])], undefined],
])('the reason when %s', (_title, hosts, reason) => {
  expect(noHostReason('host~1.key', hosts)).toBe(reason);
});

test('only hosts that offer the class, and take new sessions, count for it', () => {
  const hosts = [host(['docker']), host(['host']), host(['host'], true), host(['docker', 'host', 'unheard-of'])];
  hosts.push(host(['host'], false, ['Its engine does not answer.']));
  expect(hostsFor('host~1.key', hosts)).toEqual([hosts[1], hosts[3]]);
});

test.each([
  ['docker+network-limited~1.key', undefined],
  ['docker+runtime-kata~1.key', undefined],
  ['docker+network-limited+runtime-runsc~1.key', "the network 'limited' and the runtime 'runsc'"],
  ['docker+network-full~1.key', "the network 'full'"],
  ['docker+mode-external+network-limited~1.key', "the mode 'external' and the network 'limited'"],
])('the reason for %s says what the hosts allow', (name, asked) => {
  const allowed = "the modes 'read-only' and the networks 'limited', 'restricted'";
  const runtimes = name.includes('runtime') ? " and the runtimes 'kata'" : '';
  expect(noHostReason(name, [host(['docker']), host(['host'])])).toBe(
    asked &&
      `No live host that offers the policy 'docker' allows ${asked}; they allow ${allowed}${runtimes}. Ask for less, or have the operator of a host allow it (\`allow:\` in SHELLFLEET_CONFIG).`,
  );
});

test.each([
  ['host~1.other', "No live host that offers the policy 'host' has the seal key other of the session."],
  [
    'host~2.key',
    "No live host that has the session's policy and seal key understands its spec (schema 2): it needs a newer version of Shellfleet.",
  ],
])('the reason for %s names the missing key or version', (name, reason) => {
  expect(noHostReason(name, [host(['host'])])).toBe(reason);
});
