import { type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { offeredClasses, parsePlacement, placementClass, toPlacement } from './placement.ts';
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

  test('can be in a class of each policy, key and schema that a host offers', () => {
    const abilities = {
      policies: ['host', 'unheard-of', 'docker'],
      sealKeys: ['new', 'old'],
      schema: 2,
    };
    expect(offeredClasses(abilities)).toEqual([
      ...['docker~1.new', 'docker+particular~1.new', 'docker~2.new', 'docker+particular~2.new'],
      ...['docker~1.old', 'docker+particular~1.old', 'docker~2.old', 'docker+particular~2.old'],
      ...['host~1.new', 'host+particular~1.new', 'host~2.new', 'host+particular~2.new'],
      ...['host~1.old', 'host+particular~1.old', 'host~2.old', 'host+particular~2.old'],
    ]);
  });
});
