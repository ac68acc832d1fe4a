import {
  append,
  type Entry,
  type Fenced,
  type Finished,
  readInput,
  retryWhileRedisIsDown,
  sealPlace,
} from '@shellfleet/mailbox';
import {
  type CommandPayload,
  type EntryPayload,
  ensureShellfleetError,
  entryPayloadSchema,
  parseOrThrow,
  type ShellfleetError,
  toCommandId,
  type WireResult,
} from '@shellfleet/protocol';
import { CleanOutput } from '../output/clean-output.ts';
import type { CommandStart } from '../shell/shell.ts';
import { failedEntry, frameOf } from './entry-frame.ts';
import { runFileOperation } from './file-operation.ts';
import { finishEntry, pauseClocksWhileDown } from './finish-entry.ts';
import { InputFeed } from './input-feed.ts';
import { OutputStore } from './output-store.ts';
import { restoreOutput } from './restore-output.ts';
import { toCommandResult, toErrorResult, toLostResult, withBlocked } from './results.ts';
import type { Executed, RunDeps } from './run-deps.ts';
import { takeTurn } from './take-turn.ts';

/**
 * One entry of the mailbox, from taken (so: started, durably) to finished.
 * `resume`: it was begun under an earlier owner, or an earlier life of this worker, and its shell lives.
 */
export async function runEntry(entry: Entry, from: 'start' | 'resume', deps: RunDeps): Promise<Finished | Fenced> {
  const executed = await execute(entry, from, deps).catch((error: unknown) =>
    failedEntry(entry, ensureShellfleetError(error), deps),
  );
  return finishEntry(entry, executed, deps); // the only place where an entry that was started becomes terminal
}

/** An entry that a vanished shell may or may not have carried out: never run again. */
export function finishLost(entry: Entry, deps: RunDeps): Promise<Finished | Fenced> {
  return finishEntry(entry, { result: toLostResult(frameOf(entry, deps)), output: [] }, deps);
}

/** Ends an entry with a failure of ours. Also for the head of the mailbox, unstarted. */
export function finishFailed(entry: Entry, error: ShellfleetError, deps: RunDeps): Promise<Finished | Fenced> {
  return finishEntry(entry, failedEntry(entry, error, deps), deps);
}

/** An entry whose start deadline passed before its turn came. */
export function finishOverdue(entry: Entry, deps: RunDeps): Promise<Finished | Fenced> {
  const frame = frameOf(entry, deps);
  return finishEntry(
    entry,
    { result: { ...toLostResult(frame), outcome: 'timeout', reason: 'wall' }, output: [] },
    deps,
  );
}

async function execute(entry: Entry, from: 'start' | 'resume', deps: RunDeps): Promise<Executed> {
  let begun = from === 'resume';
  try {
    const payload = openPayload(entry, deps);
    begun = true;
    return await executePayload(entry, payload, from, deps);
  } catch (error) {
    // It may still run, and the next entry must not meet it.
    if (begun) await deps.shell.abandon();
    throw error;
  }
}

function executePayload(entry: Entry, payload: EntryPayload, from: 'start' | 'resume', deps: RunDeps) {
  switch (payload.type) {
    case 'command':
      return runCommand(entry, payload, from, deps);
    case 'file':
      return runFileOperation(entry, payload.operation, from, deps, frameOf(entry, deps));
    case 'restart':
      return runRestart(entry, from, deps);
  }
}

async function runCommand(
  entry: Entry,
  payload: CommandPayload,
  from: 'start' | 'resume',
  deps: RunDeps,
): Promise<Executed> {
  const { shell, spec, owner, signal } = deps;
  const { createRedactor } = deps.redaction;
  const clean = new CleanOutput({ ...spec.output, encoding: payload.encoding, createRedactor });
  const log = deps.hostLog.ofCommand(owner.keys, entry.id, spec.output.maxBytes);
  if (from === 'resume') await restoreOutput(clean, entry, owner, log, signal);
  // Another after each reconnection, and none once the shell was given up.
  const live = () => (shell.hasSandbox ? shell.turns.shell : undefined);
  const store = new OutputStore({
    clean,
    log,
    onLogFailed: (err) => deps.logger.warn({ err }, 'host-log.append-failed'),
    append: (entries) =>
      retryWhileRedisIsDown(() => append(owner, entry.id, entries), signal, {
        availability: pauseClocksWhileDown(deps),
      }),
    ack: (stream, offset) => live()?.ack(entry.id, stream, offset),
    pause: () => live()?.pause(),
    resume: () => live()?.resumeReading(),
    othersRun: deps.othersRun,
    onLost: () => live()?.stop(entry.id, { killGraceMs: 0 }),
  });
  const stop = () => live()?.stop(entry.id, { killGraceMs: payload.killGraceMs });
  const input = payload.input === undefined ? undefined : feedInput(entry, stop, deps);
  const turn = await takeTurn(toStart(entry, payload), from, deps, {
    onOutput: (stream, offset, bytes) => store.push(stream, offset, bytes),
    received: () => clean.received,
    input,
  }).finally(() => input?.close());
  const output = await store.end();
  const texts = clean.texts();
  const executed = (result: WireResult): Executed => ({ result: withBlocked(result, clean.blocked), output });
  if (turn.type === 'ended') {
    const frame = frameOf(entry, deps, turn.end);
    if (input?.failure !== undefined && turn.end.reason === 'cancelled')
      return executed(toErrorResult(input.failure, frame, texts));
    return executed(toCommandResult(turn.end, texts, frame, payload.cwd));
  }
  const frame = frameOf(entry, deps);
  if (turn.type === 'lost') return executed({ ...toLostResult(frame), ...texts });
  return executed(toErrorResult(turn.error, frame, texts, turn.reason));
}

/** What is written to the entry's open stdin, from the mailbox to whatever connection its shell has. */
function feedInput(entry: Entry, stop: () => void, deps: RunDeps): InputFeed {
  const { owner, sealer, signal } = deps;
  const place = sealPlace('input', owner.keys, entry.id);
  const clocks = pauseClocksWhileDown(deps);
  const feed = new InputFeed({
    entryId: entry.id,
    commandId: toCommandId(owner.keys.session, entry.id),
    read(position, onAway) {
      const onDown = () => {
        onAway();
        clocks.onDown();
      };
      const availability = { onDown, onUp: clocks.onUp };
      return retryWhileRedisIsDown(() => readInput(owner, entry.id, position), signal, { availability });
    },
    openChunk: (sealed) => sealer.openBytes(sealed, place),
    stop,
  });
  deps.onInputBell(() => feed.ring());
  return feed;
}

async function runRestart(entry: Entry, from: 'start' | 'resume', deps: RunDeps): Promise<Executed> {
  const { terminationTimeoutMs } = deps.spec;
  const start = { type: 'restart', entryId: entry.id, terminationTimeoutMs } as const;
  const turn = await takeTurn(start, from, deps, {
    onOutput: (stream, offset, bytes) => deps.shell.turns.shell.ack(entry.id, stream, offset + bytes.byteLength),
    received: () => ({ stdout: 0, stderr: 0 }),
  });
  if (turn.type !== 'ended') {
    // Whatever happened to the old shell: the next entry gets a fresh one, which is what was asked for.
    await deps.shell.abandon();
  }
  const frame = frameOf(entry, deps, turn.type === 'ended' ? turn.end : undefined);
  const shell = { ...frame.shell, state: 'lost', reason: 'restarted' } as const;
  return { result: { ...toLostResult(frame), outcome: 'success', exitCode: 0, reason: 'exited', shell }, output: [] };
}

function toStart(entry: Entry, payload: CommandPayload): CommandStart {
  const { script, env, cwd, timeoutMs, noOutputTimeoutMs, killGraceMs } = payload;
  return {
    type: 'command',
    entryId: entry.id,
    script,
    timeoutMs,
    killGraceMs,
    ...(env === undefined ? {} : { env }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(noOutputTimeoutMs === undefined ? {} : { noOutputTimeoutMs }),
    ...(payload.stdin === undefined ? {} : { stdin: Buffer.from(payload.stdin, 'base64') }),
    ...(payload.input === undefined ? {} : { stdin: 'open' }),
  };
}

function openPayload(entry: Entry, { owner, sealer }: RunDeps): EntryPayload {
  const plain = sealer.open(entry.payload, sealPlace('payload', owner.keys, entry.id));
  return parseOrThrow(
    entryPayloadSchema,
    JSON.parse(plain),
    'INTERNAL',
    `The payload of ${owner.keys.session}.${entry.id}`,
  );
}
