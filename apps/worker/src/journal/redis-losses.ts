import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tryJson } from '@shellfleet/protocol';
import type { RedisHistory } from '@shellfleet/redis';
import { z } from 'zod';

// Tells whether Redis may have returned to an older state, and so may hand out again ids that this host began. If Redis
// lost nothing, only a client can have written an entry whose id is handed out again.

export interface RedisLosses {
  /** Tells whether Redis may have lost writes within the retention. */
  mayHaveHappened(): boolean;
}

const seenSchema = z.object({ runId: z.string(), replicationId: z.string(), changedAt: z.number() });

/** Watches for losses of Redis. The journal's directory has the observations of earlier processes. */
export function watchRedisLosses(directory: string, history: RedisHistory, retentionMs: number): RedisLosses {
  const changedAt = lastChange(directory, history);
  return {
    mayHaveHappened: () => Math.max(changedAt, history.changedAt ?? 0) > Date.now() - retentionMs,
  };
}

/** Returns the time (ms) at which Redis was last replaced before this process started; 0 for never. */
function lastChange(directory: string, { identity }: RedisHistory): number {
  const path = join(directory, 'redis.json');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const seen = seenSchema.safeParse(tryJson(readIfThere(path))).data;
  const hasBegun = readdirSync(directory).some((name) => name.endsWith('.begun'));
  const isSame =
    identity !== undefined && seen?.runId === identity.runId && seen.replicationId === identity.replicationId;
  const changedAt = isSame ? seen.changedAt : hasBegun || identity === undefined ? Date.now() : 0;
  try {
    if (identity !== undefined) writeFileSync(path, JSON.stringify({ ...identity, changedAt }), { mode: 0o600 });
  } catch {
    // If the file cannot be written, the next process assumes that Redis was replaced.
  }
  return changedAt;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
