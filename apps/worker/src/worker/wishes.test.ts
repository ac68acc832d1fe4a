import type { SessionJob } from '@shellfleet/placement';
import { fleetKeys, hostKeys, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { HostServices } from '../run/host-services.ts';
import { Wishes } from './wishes.ts';

const NAMESPACE = 'ns';
const BEAT = {
  ...{ slots: 1, free: 0, policies: ['docker'], sealKeys: ['key'], schema: 2, version: '1', boot: 'b' },
  ...{ defaultImage: 'a', draining: false },
};

/** Asks the host `h1` about a session. `h2` sends a heartbeat, and the session `s` is on the host `nearHost`. */
function ask({ beat = {} as object | null, nearHost = 'h2', own = [] as string[], near = '', image = '' }) {
  const beats = new Map([['h1', JSON.stringify({ ...BEAT, images: own })]]);
  if (beat !== null) beats.set('h2', JSON.stringify({ ...BEAT, ...beat }));
  const state: Record<string, string> = { phase: 'open', generation: '1', class: 'docker', host: nearHost };
  const redis = {
    zrange: async () => ['h1', 'h2'],
    get: async (key: string) => [...beats].find(([hostId]) => key === hostKeys(NAMESPACE, hostId).alive)?.[1] ?? null,
    hmget: async (key: string, ...fields: string[]) =>
      fields.map((field) => (key === sessionKeys(NAMESPACE, 't', 's').state ? (state[field] ?? null) : null)),
    llen: async () => 0,
    lindex: async () => null,
  };
  const images = { marks: own, markOf: (name: string) => `mark of ${name}` };
  const host = { redis, namespace: NAMESPACE, fleet: fleetKeys(NAMESPACE), hostId: 'h1', sandboxes: { images } };
  const data = near === '' ? {} : { near };
  const job = { tenant: 't', session: 'new', placementClass: 'docker~1.key', data } as SessionJob;
  return new Wishes(host as unknown as HostServices).areMetElsewhere(job, image === '' ? undefined : image);
}

const WITH_IMAGE = { images: ['mark of alpine'] };

describe('the wishes of a session', () => {
  test.each([
    ['if another host has its image and this one has not', { image: 'alpine', beat: WITH_IMAGE }, true],
    ['unless this host has the image as well', { image: 'alpine', beat: WITH_IMAGE, own: WITH_IMAGE.images }, false],
    ['unless no host has the image', { image: 'alpine' }, false],
    ['unless there is no other host', { image: 'alpine', near: 's', beat: null }, false],
    ['unless the other host drains', { image: 'alpine', beat: { ...WITH_IMAGE, draining: true } }, false],
    ['unless the other host offers another policy', { image: 'alpine', beat: { ...WITH_IMAGE, policies: [] } }, false],
    ['if the session that it wants to be near is on the other host', { near: 's' }, true],
    ['unless that session is on this host', { near: 's', nearHost: 'h1' }, false],
    ['unless that session has no host', { near: 's', nearHost: '' }, false],
    ['unless there is no such session', { near: 'unknown' }, false],
    ['unless each host meets one of two', { near: 's', nearHost: 'h1', image: 'alpine', beat: WITH_IMAGE }, false],
  ])('leave it to another host %s', async (_when, given, expected) => {
    expect(await ask(given)).toBe(expected);
  });
});
