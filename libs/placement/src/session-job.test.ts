import { hostOfferSchema, LIMITS, type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { isOffered, offeredClasses, parseClass, parsePlacement, placementClass, toPlacement } from './placement.ts';
import { differences, newSessionJob, parseSessionJob } from './session-job.ts';

const ref = { tenant: 'acme', session: 's' };
const placementOf = (spec: SessionSpec) => toPlacement(sessionSpecSchema.parse(spec));
const wanted = placementOf({ priority: 3, labels: { team: 'build', arch: 'arm64' } });

/** Returns the job as BullMQ does, with its data changed. */
const stored = (change: object = {}, queue: 'docker' | 'host' = 'docker') => {
  const { data } = newSessionJob(ref, '7', wanted);
  return parseSessionJob({ id: 's~acme~s', data: JSON.parse(JSON.stringify({ ...data, ...change })) }, queue);
};

describe('the job of a session', () => {
  test('is parsed as it was added, with the class of its queue', () => {
    expect(stored()).toEqual({ ...ref, placementClass: 'docker', data: { ...wanted, generation: '7' } });
    expect(placementClass(wanted)).toBe('docker');
  });

  test('is not parsed from a job whose id names no session', () => {
    expect(parseSessionJob({ id: '12', data: {} }, 'docker')).toBeUndefined();
  });

  test.each([
    ['nothing was changed', {}, []],
    ['the order of the labels was changed', { labels: { arch: 'arm64', team: 'build' } }, []],
    ['the policy was changed', { policy: 'host' }, ['policy']],
    ['the priority was changed', { priority: 0 }, ['priority']],
    ['labels of the host were added', { hosts: { gpu: 'yes' } }, ['hosts']],
    ['a network was added', { network: 'full' }, ['network']],
    ['the labels were changed', { labels: { team: 'other', arch: 'arm64' } }, ['labels']],
    ['a field was added', { image: 'x' }, ['data']],
    ['the policy does not exist', { policy: 'sandboxie' }, ['data']],
    ['the priority is no number', { priority: 'first' }, ['data']],
    ['the job is of an earlier generation with another priority', { generation: '6', priority: 9 }, []],
  ])('is compared with the sealed spec when %s', (_title, change, found) => {
    const job = stored(change);
    expect(job && differences(job, '7', wanted)).toEqual(found);
  });

  test('differs from the spec when it is in the queue of another policy', () => {
    const moved = stored({}, 'host');
    const older = stored({ generation: '6' }, 'host');
    expect(moved && differences(moved, '7', wanted)).toEqual(['queue']);
    expect(older && differences(older, '7', wanted)).toEqual(['queue']);
  });

  test('has a copy of the placement, which is parsed if it is valid', () => {
    expect(parsePlacement(JSON.stringify(wanted))).toEqual(wanted);
    expect(['', '{', '{}', '{"policy":"docker","priority":-1,"labels":{}}'].map(parsePlacement)).toEqual(
      Array(4).fill(undefined),
    );
  });

  const abilities = {
    ...{ policies: ['host', 'unheard-of', 'docker'], sealKeys: ['new', 'old'], schema: 2 },
    ...{ allow: hostOfferSchema.parse({}), labels: { gpu: 'yes', zone: 'a' } },
  };

  test('can be in a class of each policy, key and schema that a host offers', () => {
    const classes = [
      ...['docker~1.new', 'docker+particular~1.new', 'docker~2.new', 'docker+particular~2.new'],
      ...['docker~1.old', 'docker+particular~1.old', 'docker~2.old', 'docker+particular~2.old'],
      ...['host~1.new', 'host+particular~1.new', 'host~2.new', 'host+particular~2.new'],
      ...['host~1.old', 'host+particular~1.old', 'host~2.old', 'host+particular~2.old'],
    ];
    expect([...offeredClasses(abilities)].sort()).toEqual(classes.sort());
    expect(classes.filter((name) => !isOffered(name, abilities))).toEqual([]);
  });

  test('can be in a class of each mode and network that a host lists', () => {
    const allow = { ...abilities.allow, modes: ['read-only', 'danger-full-access'], networks: ['restricted', 'full'] };
    const listing = { ...abilities, policies: ['docker'], sealKeys: ['k'], schema: 1, allow };
    const words = ['', '+full', '+danger-full-access', '+danger-full-access+full'];
    const classes = words.flatMap((word) => [`docker${word}~1.k`, `docker${word}+particular~1.k`]);
    expect([...offeredClasses(listing)].sort()).toEqual(classes.sort());
    expect(classes.filter((name) => !isOffered(name, listing))).toEqual([]);
  });
});

describe('the class of a session', () => {
  const classOf = (spec: SessionSpec) => placementClass(toPlacement(sessionSpecSchema.parse(spec), '1.new'));
  const host = {
    ...{ policies: ['docker', 'host'], sealKeys: ['new'], schema: 1 },
    ...{ allow: hostOfferSchema.parse({ networks: ['full'] }), labels: { gpu: 'yes', zone: 'a' } },
  };

  test.each<[string, SessionSpec, string, boolean]>([
    ['no mode that every host allows', { sandbox: { mode: 'read-only' } }, 'docker~1.new', true],
    ['a mode', { sandbox: { mode: 'danger-full-access' } }, 'docker+danger-full-access~1.new', false],
    [
      'the mode of a session without a sandbox',
      { sandbox: { selection: 'forbid' } },
      'docker+danger-full-access~1.new',
      false,
    ],
    ['no network that its policy has', { policy: 'host', sandbox: { network: 'full' } }, 'host~1.new', true],
    ['a network', { sandbox: { network: 'full' } }, 'docker+full~1.new', true],
    [
      'a network, beside what makes it particular',
      { sandbox: { network: 'limited', allowedHosts: ['a.b'] } },
      'docker+limited+particular~1.new',
      false,
    ],
    ['labels by name', { hosts: { zone: 'a', gpu: 'yes' } }, 'docker,gpu=yes,zone=a~1.new', true],
    [
      'all after another',
      { image: 'a', hosts: { gpu: 'yes' }, sandbox: { network: 'full' } },
      'docker+full+particular,gpu=yes~1.new',
      true,
    ],
    ['a label with another value', { hosts: { gpu: 'no' } }, 'docker,gpu=no~1.new', false],
    [
      'a label that no host has',
      { hosts: { gpu: 'yes', 'a/b.c-d_e': 'x' } },
      'docker,a/b.c-d_e=x,gpu=yes~1.new',
      false,
    ],
  ])('has %s', (_what, spec, name, offered) => {
    expect(classOf(spec)).toBe(name);
    expect(isOffered(name, host)).toBe(offered);
  });

  test('is bounded in length, whatever a session asks for', () => {
    const hosts = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`${n}`.padEnd(63, 'n'), 'v'.repeat(63)]));
    const name = placementClass({
      ...toPlacement(sessionSpecSchema.parse({ policy: 'host', image: undefined, hosts }), `999999.${'k'.repeat(32)}`),
      ...{ mode: 'danger-full-access', network: 'restricted', particular: true },
    });
    expect(name.length).toBeLessThanOrEqual(LIMITS.placementClassChars);
    expect(parseClass(name)).toMatchObject({ hosts, particular: true, keyId: 'k'.repeat(32) });
  });

  test.each([
    'docker+unheard-of~1.new',
    'docker+full+full~1.new',
    'docker,gpu~1.new',
    'docker,gpu=~1.new',
    'docker ~1.new',
  ])('is not known from %s', (name) => {
    expect(parseClass(name)).toBeUndefined();
    expect(isOffered(name, host)).toBe(false);
  });
});
