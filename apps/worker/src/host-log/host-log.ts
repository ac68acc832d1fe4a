import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogPage, LogQuestion, SessionKeys } from '@shellfleet/protocol';
import type { OverflowPiece } from '../output/piece.ts';
import { OverflowLog } from './overflow-log.ts';
import { readLogPage } from './read-page.ts';
import { sweepLogs } from './sweep-logs.ts';

/** Bytes in the answer to one read of a log. An attached reader reads all of it, and a command may wait for each page. */
const PAGE_BYTES = 256 << 10;
const ATTACHED_PAGE_BYTES = 1 << 20;

export interface LogLimits {
  /** Bytes of one command; beyond that the middle is dropped. */
  commandBytes: number;
  /** Bytes of all commands of this host; beyond that the oldest logs are removed. */
  hostBytes: number;
  maxAgeMs: number;
}

/** The host's log of one command. Files are created or read when they are first needed. */
export interface CommandLog {
  append(pieces: readonly OverflowPiece[]): Promise<void>;
  /** The pieces that an earlier process of this worker stored, in order. A whole log is never in memory. */
  restore(): AsyncIterable<OverflowPiece>;
}

/** The logs of this host: a folder for each command that printed more than its session's stream carries. */
export interface HostLog {
  ofCommand(keys: SessionKeys, entryId: string, keptBytes: number): CommandLog;
  /** Reads a page of a command's log, also after the command or the worker process that wrote it has ended. */
  read(keys: SessionKeys, question: LogQuestion): Promise<LogPage>;
  /** Removes logs older than the retention, then the oldest until the rest is within the quota. */
  sweep(): Promise<void>;
}

export function createHostLog(folder: string, limits: LogLimits): HostLog {
  const folderOf = (keys: SessionKeys) =>
    join(folder, createHash('sha256').update(keys.prefix).digest('hex').slice(0, 16));
  return {
    ofCommand: (keys, entryId, keptBytes) =>
      createCommandLog(() => `${folderOf(keys)}-${entryId}`, keptBytes, limits.commandBytes),
    read: (keys, { entry, streams, from, attached }) =>
      readLogPage(`${folderOf(keys)}-${entry}`, {
        ...{ streams, from },
        maxBytes: attached === undefined ? PAGE_BYTES : ATTACHED_PAGE_BYTES,
      }),
    sweep: () => sweepLogs(folder, { retentionMs: limits.maxAgeMs, quotaBytes: limits.hostBytes }),
  };
}

/** Few commands have a log, so the name of its folder is not computed before. */
function createCommandLog(folderOf: () => string, keptBytes: number, quotaBytes: number): CommandLog {
  let opened: ReturnType<typeof OverflowLog.open> | undefined;
  const open = () => {
    opened ??= OverflowLog.open({ folder: folderOf(), segmentBytes: Math.max(keptBytes, 1 << 20), quotaBytes });
    return opened;
  };
  return {
    append: async (pieces) => {
      if (pieces.length > 0) await (await open()).append(pieces);
    },
    async *restore() {
      const exists = await access(folderOf()).then(
        () => true,
        () => false,
      );
      if (exists) yield* (await open()).read();
    },
  };
}
