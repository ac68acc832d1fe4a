import { anchorAuditHeads } from '@shellfleet/mailbox';
import type { AuditHead } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Audit } from './audit.ts';

const EVERY_MS = 60_000;

/** Stores the heads that have changed in Redis every minute, and at the end. */
export function anchorHeadsRegularly(
  audit: Pick<Audit, 'heads'>,
  { redis, namespace, hostId, logger }: { redis: Redis; namespace: string; hostId: string; logger: Logger },
): { close(): Promise<void> } {
  const stored = new Map<string, string>();
  const anchor = async () => {
    const changed = new Map<string, AuditHead>(
      [...audit.heads()].filter(([tenant, { n, mac }]) => n > 0 && stored.get(tenant) !== mac),
    );
    try {
      await anchorAuditHeads(redis, namespace, hostId, changed);
      for (const [tenant, { mac }] of changed) stored.set(tenant, mac);
    } catch (err) {
      logger.warn({ err }, 'audit.anchor-failed');
    }
  };
  const timer = setInterval(() => void anchor(), EVERY_MS);
  return {
    async close() {
      clearInterval(timer);
      await anchor();
    },
  };
}
