import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogPage, LogRequest, SessionKeys } from '@shellfleet/protocol';
import type { OverflowPiece } from '../output/output-queue.ts';
import { OverflowLog } from './overflow-log.ts';
import { readLogPage } from './read-page.ts';
import { sweepLogs } from './sweep-logs.ts';

/** Bytes in the reply to one read. An attached reader reads the whole log in pages, and a command may wait for each. */
const PAGE_BYTES = 256 << 10;
const ATTACHED_PAGE_BYTES = 1 << 20;

export interface LogLimits {
  /** Quota of one command, in bytes. Above it the middle is dropped. */
  commandBytes: number;
  /** Quota of all commands of this host, in bytes. Above it the oldest logs are removed. */
  hostBytes: number;
  maxAgeMs: number;
}

/** Overflow log of one command. Files are created or read when they are first needed. */
export interface CommandLog {
  append(pieces: readonly OverflowPiece[]): Promise<void>;
  /** Reads, in order, the pieces that an earlier process stored. The whole log is never in memory. */
  restore(): AsyncIterable<OverflowPiece>;
}

/** Overflow logs of this host: a directory for each command that printed more than its session's stream takes. */
export interface OverflowLogs {
  ofCommand(keys: SessionKeys, entryId: string, keptBytes: number): CommandLog;
  /** Reads a page of a command's log, even after the command or the worker process that wrote it has ended. */
  read(keys: SessionKeys, request: LogRequest): Promise<LogPage>;
  sweep(): Promise<void>;
}

export function createOverflowLogs(directory: string, limits: LogLimits): OverflowLogs {
  const directoryOf = (keys: SessionKeys) =>
    join(directory, createHash('sha256').update(keys.prefix).digest('hex').slice(0, 16));
  return {
    ofCommand: (keys, entryId, keptBytes) =>
      createCommandLog(() => `${directoryOf(keys)}-${entryId}`, keptBytes, limits.commandBytes),
    read: (keys, { entry, streams, from, attached }) =>
      readLogPage(`${directoryOf(keys)}-${entry}`, {
        ...{ streams, from },
        maxBytes: attached === undefined ? PAGE_BYTES : ATTACHED_PAGE_BYTES,
      }),
    sweep: () => sweepLogs(directory, { retentionMs: limits.maxAgeMs, quotaBytes: limits.hostBytes }),
  };
}

/** Creates the log of a command. Few commands need one, so the name of its directory is computed on first use. */
function createCommandLog(directoryOf: () => string, keptBytes: number, quotaBytes: number): CommandLog {
  let opened: ReturnType<typeof OverflowLog.open> | undefined;
  const open = () => {
    opened ??= OverflowLog.open({ directory: directoryOf(), segmentBytes: Math.max(keptBytes, 1 << 20), quotaBytes });
    return opened;
  };
  return {
    append: async (pieces) => {
      if (pieces.length > 0) await (await open()).append(pieces);
    },
    async *restore() {
      const exists = await access(directoryOf()).then(
        () => true,
        () => false,
      );
      if (exists) yield* (await open()).read();
    },
  };
}
