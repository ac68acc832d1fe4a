import { type CommandPayload, toCommandId, type WireResult } from '@shellfleet/protocol';
import { checkInputEnd, sealPlace } from '@shellfleet/sealing';
import { CleanOutput } from '../output/clean-output.ts';
import type { CommandLog } from '../overflow-log/overflow-logs.ts';
import type { CommandStart, EntryHandlers } from '../shell/shell.ts';
import { AttachedReader } from './attached-reader.ts';
import { networkOf } from './check-network.ts';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { InputFeed } from './input-feed.ts';
import { createAppend, OutputStore } from './output-store.ts';
import { pauseClocksWhileDown } from './pause-clocks.ts';
import { restoreOutput } from './restore-output.ts';
import { resultBase, toCancelled, toCommandResult, toErrorResult, toLostResult, withBlocked } from './results.ts';
import { type RunEnd, runOnShell } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

/** Runs one command with its output and stdin, and returns how it ended. */
export async function runCommand(
  run: EntryRun,
  payload: CommandPayload,
  session: SessionContext,
): Promise<EntryResult> {
  const { entry } = run;
  const { killGraceMs } = payload;
  const { encoding } = payload;
  const { createRedactor } = session.redaction;
  const { streamBytes, ...cut } = session.spec.output;
  const clean = new CleanOutput({ createRedactor, streamBytes, texts: { ...cut, encoding } });
  if (payload.reader === 'attached') run.reader = attachReader(run, session);
  const log = session.overflowLogs.ofCommand(session.owner.keys, entry.id, session.spec.output.maxBytes);
  if (run.from === 'resume') await restoreOutput(clean, entry, session.mailbox, log, run.reader);
  const store = openOutputStore(run, clean, log, session);
  const endUse = session.egress?.begin(networkOf(payload, session.spec));
  const input = payload.input === undefined ? undefined : feedInput(run, killGraceMs, session);
  const start: CommandStart = { ...payload, entryId: entry.id, stdin: toStdin(payload) };
  const begunAt = performance.now();
  let firstOutputMs: number | undefined;
  const handlers: EntryHandlers = {
    onOutput(stream, offset, bytes) {
      if (firstOutputMs === undefined && run.from === 'start') firstOutputMs = Math.round(performance.now() - begunAt);
      store.push(stream, offset, bytes);
    },
    received: () => clean.received,
    onFollowed(live, how) {
      input?.connected(live, how);
      if (how === 'resume') store.acknowledge();
    },
    onInputTaken: (offset, readerClosed) => input?.taken(offset, readerClosed),
  };
  let end: RunEnd;
  try {
    end = await runOnShell(start, run, session, handlers);
  } finally {
    endUse?.();
    input?.close();
    run.reader?.close();
  }
  const output = await store.end();
  const texts = clean.texts();
  const toResult = (): WireResult => {
    const base = resultBase(entry, session, end.type === 'ended' ? end.end : undefined, firstOutputMs);
    if (end.type === 'lost') return { ...toLostResult(base, 'begun-before'), ...texts };
    if (end.type === 'failed') return toErrorResult(end.error, base, texts, end.reason);
    // Redis had forgotten the running command. A requested cancel takes effect when the Result is stored.
    if (end.end.reason === 'cancelled' && session.stoppedUnstored.has(entry.id))
      return { ...toLostResult(base, 'begun-before'), ...texts };
    if (input?.failure !== undefined && end.end.reason === 'cancelled')
      return toErrorResult(input.failure, base, texts);
    const result = toCommandResult(end.end, texts, base, payload);
    if (end.end.reason !== 'cancelled' || run.cancelReason === undefined) return result;
    return toCancelled(result, run.cancelReason);
  };
  return { result: withBlocked(toResult(), clean.blocked), output, lastOutput: () => clean.last() };
}

function openOutputStore(run: EntryRun, clean: CleanOutput, log: CommandLog, session: SessionContext): OutputStore {
  const { entry, from } = run;
  const { mailbox, logger, hostEntries, shell } = session;
  const appendCall = createAppend(entry.id);
  const store = new OutputStore({
    clean,
    log,
    onLogFailed: (err) => logger.warn({ err }, 'overflow-log.append-failed'),
    async append(entries) {
      const availability = pauseClocksWhileDown(shell);
      const appended = await mailbox.retry(appendCall(entries), { availability });
      const last = entries.at(-1);
      if (appended.type === 'stored' && last !== undefined) run.stored = { ...appended.offsets, seq: last.seq + 1 };
      return appended;
    },
    ack: (stream, offset) => shell.live?.ack(entry.id, stream, offset),
    pause: () => shell.live?.pause(),
    resume: () => shell.live?.resumeReading(),
    othersRun: () => hostEntries.hasOthers,
    reader: run.reader,
    onLost: () => {
      session.stoppedUnstored.add(entry.id);
      shell.live?.stop(entry.id, { killGraceMs: 0 });
    },
  });
  if (from === 'resume') store.restore(clean.received);
  return store;
}

function attachReader({ entry, isCancelled }: EntryRun, { mailbox, settings }: SessionContext) {
  const reader = new AttachedReader({
    stallMs: settings.readerStallMs,
    reachRedis: () => mailbox.readRecord(entry.id),
  });
  if (isCancelled) reader.close();
  return reader;
}

/** Forwards the entry's open stdin from the mailbox to the shell, over reconnections. */
function feedInput(run: EntryRun, killGraceMs: number, session: SessionContext): InputFeed {
  const { mailbox, owner, sealer, shell } = session;
  const { id } = run.entry;
  const place = sealPlace('input', owner.keys, id);
  const clocks = pauseClocksWhileDown(shell);
  const feed = new InputFeed({
    entryId: id,
    commandId: toCommandId(owner.keys.session, id),
    read(position, onAway) {
      const onDown = () => {
        onAway();
        clocks.onDown();
      };
      const availability = { onDown, onUp: clocks.onUp };
      return mailbox.retry((once) => once.readInput(id, position), { availability });
    },
    openChunk: (sealed) => sealer.openBytes(sealed, place),
    checkEnd: (end, signed) => checkInputEnd(sealer, owner.keys, id, end, signed),
    stop: () => shell.live?.stop(id, { killGraceMs }),
  });
  run.onInput(() => feed.wakeUp());
  return feed;
}

function toStdin({ stdin, input }: CommandPayload): Uint8Array | 'open' | undefined {
  if (input !== undefined) return 'open';
  return stdin === undefined ? undefined : Buffer.from(stdin, 'base64');
}
