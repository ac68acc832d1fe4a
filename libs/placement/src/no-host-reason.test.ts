import { hostOfferSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { hostsFor, noHostReason } from './no-host-reason.ts';

const host = (policies: string[], draining = false, problems: string[] = []) => ({
  ...{ policies, draining, problems },
  ...{ sealKeys: ['key'], schema: 1, allow: hostOfferSchema.parse({}), labels: {} as Record<string, string> },
});

describe('hosts for a placement class', () => {
  test.each([
    [
      'no host is alive',
      [],
      'No host of this fleet is up. Start one: `shellfleet up`, or `shellfleet worker` on another machine.',
    ],
    [
      'no host offers the policy',
      [host(['docker']), host(['docker'])],
      "No live host offers the policy 'host'; they offer 'docker'. The operator of a host lists what it offers in SHELLFLEET_POLICIES.",
    ],
    [
      'no host offers any policy',
      [host([])],
      "No live host offers the policy 'host'; they offer none. The operator of a host lists what it offers in SHELLFLEET_POLICIES.",
    ],
    [
      'every host that offers the policy is draining',
      [host(['docker']), host(['docker', 'host'], true)],
      "Every live host that offers the policy 'host' is draining.",
    ],
    [
      'every host that offers the policy has a problem or is draining',
      [host(['docker']), host(['host'], true), host(['host'], false, ['Its engine does not answer.'])],
      "No live host that offers the policy 'host' takes sessions now: Its engine does not answer.",
    ],
    ['a host offers the policy', [host(['docker']), host(['host'])], undefined],
  ])('give the expected reason, if any, when %s', (_title, hosts, reason) => {
    expect(noHostReason('host~1.key', hosts)).toBe(reason);
  });

  test('are only those that offer the class and take new sessions', () => {
    const hosts = [host(['docker']), host(['host']), host(['host'], true), host(['docker', 'host', 'unheard-of'])];
    hosts.push(host(['host'], false, ['Its engine does not answer.']));
    expect(hostsFor('host~1.key', hosts)).toEqual([hosts[1], hosts[3]]);
  });
});

describe('a particular session', () => {
  const refusesUser = { path: 'user', message: 'root is not allowed (SHELLFLEET_USERS)' };
  const refusesImage = { path: 'image', message: 'it is not listed (SHELLFLEET_IMAGES)' };
  const of = 'docker+particular~1.key';
  const choosy = host(['docker']);
  const choosier = host(['docker']);
  const refusals = (one: typeof choosy) =>
    one === choosier ? [refusesUser, refusesImage] : one === choosy ? [refusesUser] : [];

  test('waits for the hosts that can run it', () => {
    const able = host(['docker']);
    expect(hostsFor(of, [choosier, able, choosy], refusals)).toEqual([able]);
    expect(noHostReason(of, [choosier, able], refusals)).toBeUndefined();
  });

  test('is told what the least strict host refuses when no host can run it', () => {
    expect(noHostReason(of, [choosier, choosy], refusals)).toBe(
      "None of the 2 live hosts that offer the policy 'docker' runs what the session asks for. user: root is not allowed (SHELLFLEET_USERS). Ask for less, or have the operator of a host allow it.",
    );
    expect(noHostReason(of, [choosier, host(['host'])], refusals)).toBe(
      "The one live host that offers the policy 'docker' does not run what the session asks for. user: root is not allowed (SHELLFLEET_USERS); image: it is not listed (SHELLFLEET_IMAGES). Ask for less, or have the operator of a host allow it.",
    );
  });

  test('is told that hosts are draining when all hosts that can run it drain', () => {
    const draining = host(['docker'], true);
    expect(noHostReason(of, [choosy, draining], refusals)).toBe(
      "Every live host that offers the policy 'docker' is draining.",
    );
  });
});

describe('a class that no host can take', () => {
  test.each([
    ['host~1.other', "No live host that offers the policy 'host' has the seal key other of the session."],
    [
      'host~2.key',
      "No live host that has the session's policy and seal key understands its spec (schema 2): it needs a newer version of Shellfleet.",
    ],
  ])('is explained by the missing key or version for %s', (name, reason) => {
    expect(noHostReason(name, [host(['host'])])).toBe(reason);
  });
});

describe('a session that asks for labels', () => {
  const labelled = (labels: Record<string, string>, draining = false) => ({ ...host(['docker'], draining), labels });
  const advice = 'The operator of a host gives it labels in SHELLFLEET_CONFIG (`labels`).';

  test.each([
    ['no host has one', 'docker,gpu=yes~1.key', [{}, { gpu: 'no' }], `has the label gpu=yes. ${advice}`],
    [
      'no host has all',
      'docker,gpu=yes,zone=a~1.key',
      [{ gpu: 'yes' }, {}],
      `has all of the labels gpu=yes, zone=a; the closest one lacks zone=a. ${advice}`,
    ],
  ])('is told so if %s', (_title, name, labels, end) => {
    expect(
      noHostReason(
        name,
        labels.map((of) => labelled(of)),
      ),
    ).toBe(`No live host that offers the policy 'docker' ${end}`);
  });

  test('waits for the hosts that have all of them', () => {
    const [other, able] = [labelled({ gpu: 'yes' }), labelled({ gpu: 'yes', zone: 'a', more: 'x' })];
    const name = 'docker,gpu=yes,zone=a~1.key';
    expect(hostsFor(name, [other, able])).toEqual([able]);
    expect(noHostReason(name, [other, able])).toBeUndefined();
    expect(noHostReason(name, [other, { ...able, draining: true }])).toBe(
      "Every live host that offers the policy 'docker' with gpu=yes and zone=a is draining.",
    );
  });
});

describe('a session with a mode or network that no host lists', () => {
  const refusal =
    "sandbox.network: this host does not allow 'full'; it allows 'restricted' (its operator's setting: allow.networks of SHELLFLEET_CONFIG)";
  const reason = `The one live host that offers the policy 'docker' does not run what the session asks for. ${refusal}. Ask for less, or have the operator of a host allow it.`;

  test('is told so, also by a process that cannot read its spec', () => {
    expect(noHostReason('docker+full~1.key', [host(['docker'])])).toBe(reason);
  });

  test('is told each refusal once by a process that can', () => {
    const refusals = () => [{ path: 'sandbox.network', message: refusal.replace('sandbox.network: ', '') }];
    expect(noHostReason('docker+full+particular~1.key', [host(['docker'])], refusals)).toBe(reason);
  });
});
