import { readStoredSession } from '@shellfleet/mailbox';
import { hostsFor, readLiveHosts, type SessionJob } from '@shellfleet/placement';
import { type HostBeat, sessionKeys } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

// WISHES-1. A session would like a host that has its image, and the host of the session that `near` names. It needs
//     neither: a host leaves it to another one only if that could take it and meets more of these wishes.

/** How long heartbeats that were read are used. */
const BEATS_MS = 500;

export class Wishes {
  readonly #host: HostServices;
  #others: { readAt: number; beats: Promise<Map<string, HostBeat>> } | undefined;

  constructor(host: HostServices) {
    this.#host = host;
  }

  /** Tells whether another live host that offers the session's class meets more of its wishes than this one. */
  async areMetElsewhere(job: SessionJob, image: string | undefined): Promise<boolean> {
    const beats = await this.#readOthers();
    const others = new Set(hostsFor(job.placementClass, [...beats.values()]));
    if (others.size === 0) return false;
    const near = job.data?.near === undefined ? '' : await this.#hostOf(job.tenant, job.data.near);
    const images = this.#host.sandboxes.images;
    const mark = image === undefined ? undefined : images?.markOf(image);
    const count = (hostId: string, marks: readonly string[]) =>
      (hostId === near ? 1 : 0) + (mark !== undefined && marks.includes(mark) ? 1 : 0);
    const here = count(this.#host.hostId, images?.marks ?? []);
    return [...beats].some(([hostId, beat]) => others.has(beat) && count(hostId, beat.images) > here);
  }

  async #hostOf(tenant: string, session: string): Promise<string> {
    const { redis, namespace } = this.#host;
    const state = await readStoredSession(redis, sessionKeys(namespace, tenant, session));
    return state?.phase === 'open' ? state.host : '';
  }

  #readOthers(): Promise<Map<string, HostBeat>> {
    const now = performance.now();
    if (this.#others === undefined || now - this.#others.readAt > BEATS_MS)
      this.#others = { readAt: now, beats: this.#readNow() };
    return this.#others.beats;
  }

  async #readNow(): Promise<Map<string, HostBeat>> {
    const beats = await readLiveHosts(this.#host.redis, this.#host.fleet);
    beats.delete(this.#host.hostId);
    return beats;
  }
}
