import {
  type FleetKeys,
  hostKeys,
  type KeptSandbox,
  keptField,
  keptSandboxSchema,
  tenantKeys,
  tryJson,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import type { KeptContainer, Sandbox, Sandboxes, SessionRef } from './sandbox.ts';

interface KeptDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  sandboxes: Pick<Sandboxes, 'listKept' | 'removeKept'>;
  logger: Logger;
}

/**
 * Sandboxes kept for a post-mortem. Their list in Redis, which `ps` reads, is updated at every change and every minute.
 */
export class KeptSandboxes {
  readonly #deps: KeptDeps;

  constructor(deps: KeptDeps) {
    this.#deps = deps;
  }

  /** Keeps the sandbox. Returns false when it could not be kept. Never rejects. */
  async keep(sandbox: Sandbox, generation: string, reason: string): Promise<boolean> {
    const { redis, fleet, hostId, logger } = this.#deps;
    try {
      if ((await sandbox.keep?.()) !== true) return false;
    } catch (err) {
      logger.warn({ err, sandbox: sandbox.description }, 'sandbox.keep-failed');
      return false;
    }
    const { containerId = '', session, id } = sandbox;
    const kept = { hostId, containerId, keptAt: new Date().toISOString(), reason, generation };
    logger.info({ sandbox: sandbox.description, reason }, 'sandbox.kept');
    // Without Redis, the next refresh() adds the container.
    const field = keptField(session, id);
    const { kept: list } = tenantKeys(fleet.namespace, session.tenant);
    await redis.hset(list, field, JSON.stringify(kept)).catch(() => {});
    await this.refresh();
    return true;
  }

  /** Removes the kept sandboxes of a session. Never rejects. */
  async purge(session: SessionRef): Promise<void> {
    await this.#deps.sandboxes.removeKept?.(session).catch((err: unknown) => this.#warn(err));
    await this.refresh();
  }

  /** Removes what exceeds the bounds of this host, and updates the list in Redis. Never rejects. */
  async refresh(): Promise<void> {
    await this.#refresh().catch((err: unknown) => this.#warn(err));
  }

  async #refresh(): Promise<void> {
    const { redis, fleet, hostId, sandboxes } = this.#deps;
    const there = (await sandboxes.listKept?.()) ?? [];
    const listedFor = hostKeys(fleet.namespace, hostId).kept;
    const tenants = new Set([...(await redis.smembers(listedFor)), ...there.map(({ session }) => session.tenant)]);
    for (const tenant of tenants) {
      const own = there.filter(({ session }) => session.tenant === tenant);
      // A tenant leaves the set after its list, so that a list is never forgotten.
      if (own.length > 0) await redis.sadd(listedFor, tenant);
      await this.#refreshTenant(tenant, own);
      if (own.length === 0) await redis.srem(listedFor, tenant);
    }
  }

  async #refreshTenant(tenant: string, there: readonly KeptContainer[]): Promise<void> {
    const { redis, fleet, hostId } = this.#deps;
    const { kept: list } = tenantKeys(fleet.namespace, tenant);
    const fields = new Map(there.map((kept) => [keptField(kept.session, kept.sandbox), kept]));
    const listed = await redis.hgetall(list);
    const own = Object.keys(listed).filter((field) => parseKept(listed[field])?.hostId === hostId);
    const gone = own.filter((field) => !fields.has(field));
    if (gone.length > 0) await redis.hdel(list, ...gone);
    for (const [field, { containerId, keptAt }] of fields) {
      if (own.includes(field)) continue;
      const kept: KeptSandbox = {
        hostId,
        containerId,
        keptAt: new Date(keptAt).toISOString(),
        reason: 'not known any more',
      };
      await redis.hset(list, field, JSON.stringify({ ...kept, generation: '' }));
    }
  }

  #warn(err: unknown): void {
    this.#deps.logger.warn({ err }, 'sandbox.keep-failed');
  }
}

const parseKept = (text: string | undefined) => keptSandboxSchema.safeParse(tryJson(text ?? '')).data;
