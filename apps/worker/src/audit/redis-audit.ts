import { repeat } from '@shellfleet/concurrency';
import { auditKeys, RemovalMarks, type Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from '../log/logger.ts';
import type { Audit } from './audit.ts';
import { ChainedAudit } from './chained-audit.ts';
import { StreamChain } from './stream-chain.ts';
import { forgetOldChains, trimStream } from './trim-stream.ts';

// The audit of a process that may lose its disk, in a stream of the fleet.

const TRIM_EVERY_MS = 60_000;
const FORGET_EVERY_MS = 3_600_000;

export interface RedisAuditOptions {
  redis: Redis;
  namespace: string;
  hostId: string;
  /** Random id of this process. */
  boot: string;
  sealKeys: readonly string[];
  sealer: Pick<Sealer, 'seal' | 'open'>;
  retentionMs: number;
  maxBytes: number;
  /** Whether events that are only noted are written. */
  noted: boolean;
  logger: Logger;
}

/** Begins the audit of this process, and removes old records of the whole fleet until it is closed. */
export function openRedisAudit(options: RedisAuditOptions): Audit {
  const { namespace, hostId, boot, sealKeys, maxBytes, logger } = options;
  const marks = new RemovalMarks(sealKeys, namespace);
  const onError = (err: unknown) => logger.warn({ err }, 'audit.trim-failed');
  const trims = repeat(() => trimStream({ ...options, marks }), { everyMs: TRIM_EVERY_MS, onError });
  const forgets = repeat(() => forgetOldChains({ ...options, marks }), { everyMs: FORGET_EVERY_MS, onError });
  const onBytes = (bytes: number) => {
    if (bytes > maxBytes) void trims.now();
  };
  const audit = new ChainedAudit({
    ...{ stateDirectoryId: undefined, noted: options.noted, logger },
    chainOf(tenant) {
      const [key] = auditKeys(sealKeys, { namespace, host: hostId, boot, tenant });
      if (key === undefined) throw new Error('No seal key');
      return new StreamChain({ ...options, chain: { host: hostId, boot, tenant }, key, onBytes });
    },
  });
  return {
    stateDirectoryId: undefined,
    record: (tenant, event) => audit.record(tenant, event),
    recorded: (tenant) => audit.recorded(tenant),
    note: (tenant, describe) => audit.note(tenant, describe),
    heads: () => audit.heads(),
    async close() {
      await Promise.all([trims.close(), forgets.close()]);
      await audit.close();
    },
  };
}
