import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS, type SessionKeys } from '@shellfleet/protocol';
import type { OverflowPiece } from '../output/clean-output.ts';
import { OverflowLog } from './overflow-log.ts';
import { sweepLogs } from './sweep-logs.ts';

/** Of one command, whatever its Result keeps. */
const QUOTA_BYTES = 64 << 20;
/** Of all commands of this host. */
const HOST_QUOTA_BYTES = 1 << 30;

/** The host's log of one command: nothing is touched on disk until there is something to write, or to read back. */
export interface CommandLog {
  append(pieces: readonly OverflowPiece[]): Promise<void>;
  /** What a worker before this one left. */
  restore(): Promise<OverflowPiece[]>;
}

/** The logs of this host: a folder for each command that printed more than its session's stream carries. */
export interface HostLog {
  ofCommand(keys: SessionKeys, entryId: string, keptBytes: number): CommandLog;
  /** Removes what is older than the retention, and the oldest of what is too much. */
  sweep(): Promise<void>;
}

export function createHostLog(folder: string): HostLog {
  const folderOf = (keys: SessionKeys) =>
    join(folder, createHash('sha256').update(keys.prefix).digest('hex').slice(0, 16));
  return {
    ofCommand: (keys, entryId, keptBytes) => createCommandLog(`${folderOf(keys)}-${entryId}`, keptBytes),
    sweep: () => sweepLogs(folder, { retentionMs: LIMITS.retentionMs, quotaBytes: HOST_QUOTA_BYTES }),
  };
}

function createCommandLog(folder: string, keptBytes: number): CommandLog {
  const options = { folder, segmentBytes: Math.max(keptBytes, 1 << 20), quotaBytes: QUOTA_BYTES };
  let opened: ReturnType<typeof OverflowLog.open> | undefined;
  const open = () => {
    opened ??= OverflowLog.open(options);
    return opened;
  };
  return {
    append: async (pieces) => {
      if (pieces.length > 0) await (await open()).log.append(pieces);
    },
    async restore() {
      const exists = await access(folder).then(
        () => true,
        () => false,
      );
      return exists ? (await open()).pieces : [];
    },
  };
}
