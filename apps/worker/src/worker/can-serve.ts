import { readSealedSpec } from '@shellfleet/mailbox';
import type { ServeVerdict, SessionJob } from '@shellfleet/placement';
import { refusedByOffer } from '@shellfleet/policy';
import { type HostOffer, isShellfleetError, type ResolvedSessionSpec, sessionKeys } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';
import { withRealWorkspace } from '../sandbox/real-workspace.ts';
import { tryOpenSpec } from '../session/open-spec.ts';

/** Decides by the sealed spec whether this host can run a session. Others stay queued for other hosts. */
export class CanServe {
  readonly #host: HostServices;
  readonly #offer: HostOffer;
  readonly #defaultImage: string;

  constructor(host: HostServices, offer: HostOffer, defaultImage: string) {
    this.#host = host;
    this.#offer = offer;
    this.#defaultImage = defaultImage;
  }

  /**
   * Returns the image that the session names, if any, when this host can run the session. Returns true also for one
   * that this host shall only end, as it was closed or its spec cannot be opened.
   */
  async job({ tenant, session }: SessionJob): Promise<ServeVerdict> {
    const { redis, namespace, sealer } = this.#host;
    const keys = sessionKeys(namespace, tenant, session);
    const sealed = await readSealedSpec(redis, keys);
    if (sealed === undefined || sealed.phase === 'closed') return true;
    const spec = tryOpenSpec(sealed, keys, sealer);
    if (isShellfleetError(spec)) return true;
    const verdict = await this.spec(spec);
    return verdict && spec.image !== undefined ? { image: spec.image } : verdict;
  }

  async spec(spec: ResolvedSessionSpec): Promise<boolean> {
    const refused = this.#refused(spec);
    if (refused.length === 0) return true;
    // A path may lead through a link to a listed directory.
    if (!refused.every(({ path }) => path === 'workspace')) return false;
    const real = await withRealWorkspace(spec).catch(() => undefined);
    return real !== undefined && this.#refused(real).length === 0;
  }

  #refused(spec: ResolvedSessionSpec) {
    return refusedByOffer(spec, this.#offer, this.#defaultImage);
  }
}
