import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { append, type Entry, type Owner, readInput } from '@shellfleet/mailbox';
import {
  type CommandPayload,
  newResult,
  type OutputEntry,
  type StreamName,
  type WireResult,
} from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { type Sealer, sealPlace } from '@shellfleet/sealing';

/** Approximate limit of a stream in a Result of this host. */
const RESULT_BYTES = 262_144;

export interface ScriptRun {
  owner: Owner;
  sealer: Sealer;
  /** Called when the process runs. `stop` kills it. */
  onStarted(stop: () => void): void;
}

/** A command of a mailbox host: `sh -c`, a process each. */
export async function runScript(run: ScriptRun, entry: Entry, payload: CommandPayload): Promise<WireResult> {
  const child = spawn('/bin/sh', ['-c', payload.script], { env: { ...process.env, ...payload.env }, detached: true });
  const stop = () => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  run.onStarted(stop);
  child.stdin.on('error', () => {});
  if (payload.input === undefined)
    child.stdin.end(payload.stdin === undefined ? undefined : Buffer.from(payload.stdin, 'base64'));
  else void feed(run, entry, child.stdin).catch(() => {});
  const texts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const offsets = { stdout: 0, stderr: 0 };
  const lines = { stdout: 0, stderr: 0 };
  let seq = 0;
  let storing = Promise.resolve();
  const store = (stream: StreamName, data: Buffer) => {
    if (offsets[stream] < RESULT_BYTES) texts[stream].push(data);
    lines[stream] += countLines(data);
    const rawFrom = offsets[stream];
    offsets[stream] += data.byteLength;
    const output: OutputEntry = {
      stream,
      seq: seq++,
      rawFrom,
      rawTo: offsets[stream],
      omittedBytes: 0,
      lines: lines[stream],
      offset: rawFrom,
      data,
    };
    storing = storing
      .then(() => retryWhileRedisIsDown(() => append(run.owner, entry.id, [output]), undefined))
      .then(() => {});
  };
  child.stdout.on('data', (data: Buffer) => store('stdout', data));
  child.stderr.on('data', (data: Buffer) => store('stderr', data));
  const deadline = setTimeout(stop, payload.timeoutMs);
  const startedAt = Date.now();
  const { code, signal } = await new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.on('close', (code, signal) => resolve({ code, signal })),
  );
  clearTimeout(deadline);
  await storing;
  const timedOut = Date.now() - startedAt >= payload.timeoutMs;
  const stdout = Buffer.concat(texts.stdout);
  const stderr = Buffer.concat(texts.stderr);
  const exitCode = code ?? 128 + constants.signals[signal as NodeJS.Signals];
  const ended = { outcome: exitCode === 0 ? 'success' : 'failure', exitCode, reason: 'exited' } as const;
  return newResult(timedOut ? { outcome: 'timeout', reason: 'wall' } : ended, {
    signal,
    stdout: stdout.toString(payload.encoding),
    stderr: stderr.toString(payload.encoding),
    totals: {
      stdoutBytes: offsets.stdout,
      stderrBytes: offsets.stderr,
      stdoutLines: lines.stdout,
      stderrLines: lines.stderr,
    },
  });
}

/** Forwards an open stdin, whenever the pipe has room. */
async function feed({ owner, sealer }: ScriptRun, entry: Entry, stdin: Writable): Promise<void> {
  const place = sealPlace('input', owner.keys, entry.id);
  for (let from = 0; ; ) {
    const position = { taken: from, from, mostBytes: 1 };
    const read = await retryWhileRedisIsDown(() => readInput(owner, entry.id, position), undefined);
    if (read.type !== 'read') return;
    for (const { end, sealed } of read.chunks) {
      if (!stdin.write(sealer.openBytes(sealed, place))) await once(stdin, 'drain');
      from = end;
    }
    if (read.closed !== undefined && from === read.written) return void stdin.end();
    if (read.chunks.length === 0) await delay(10);
  }
}

const countLines = (bytes: Buffer) => bytes.toString('latin1').split('\n').length - 1;
