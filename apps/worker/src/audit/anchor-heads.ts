import { repeat } from '@shellfleet/concurrency';
import { anchorAudit } from '@shellfleet/mailbox';
import type { AuditHead } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import type { Audit } from './audit.ts';

const EVERY_MS = 60_000;

/**
 * Stores the place of the audit and its changed heads in Redis, even if it has no records, so that a loss is noticed.
 */
export function anchorHeadsRegularly(
  audit: Pick<Audit, 'heads' | 'stateDirectoryId'>,
  { redis, namespace, hostId, logger }: { redis: Redis; namespace: string; hostId: string; logger: Logger },
): { close(): Promise<void> } {
  const { stateDirectoryId } = audit;
  if (stateDirectoryId === undefined) return { close: async () => {} };
  const stored = new Map<string, string>();
  const anchor = async () => {
    const changed = new Map<string, AuditHead>(
      [...audit.heads()].filter(([tenant, { n, mac }]) => n > 0 && stored.get(tenant) !== mac),
    );
    await anchorAudit(redis, { namespace, host: hostId, stateDirectoryId }, changed);
    for (const [tenant, { mac }] of changed) stored.set(tenant, mac);
  };
  const rounds = repeat(anchor, {
    everyMs: EVERY_MS,
    onError: (err) => logger.warn({ err }, 'audit.anchor-failed'),
  });
  void rounds.now();
  return {
    async close() {
      await rounds.close();
      await rounds.now();
    },
  };
}
