import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { ChildReport, ChildRequest } from './child/request.ts';
import { parseReport, REPORT_BYTES } from './parse-report.ts';
import { type StartedProcess, sendRequest, signalGroup } from './start-process.ts';
import { endStrays, lastPid } from './stray-processes.ts';

// One process for each call.
// TOOL-PROCESS-1. The report is read completely before the exit is awaited, because a report may be larger than a pipe.
// TOOL-PROCESS-2. When this returns, the process, its group and all processes with its mark are gone.
// TOOL-PROCESS-3. The worker receives only one report of limited size and the last bytes that the process printed.

/** Time to exit after a report, or after SIGTERM. */
const STEP_MS = 1_000;

export interface ToolProcessOptions {
  request: ChildRequest;
  /** Arguments of a call as JSON. */
  args?: string;
  timeoutMs: number;
  outputBytes: number;
  /** Aborts when the call is stopped early. */
  signal: AbortSignal;
}

export type ToolProcessEnd = { stdout: string; stderr: string } & (
  | { type: 'reported'; report: ChildReport; body: Buffer }
  | { type: 'timeout' | 'stopped' }
  | { type: 'too-large'; bytes: number }
  /** `begun` is true if the process had read its request. */
  | { type: 'died'; begun: boolean; exitCode: number | null; signal: string | null; outOfMemory: boolean }
);

/** Sends a process its one request, and returns when it has ended. */
export async function runToolProcess(process: StartedProcess, options: ToolProcessOptions): Promise<ToolProcessEnd> {
  const { child, exited, mark } = process;
  const before = lastPid();
  const startedAt = performance.now();
  sendRequest(process, options.request, options.args ?? '');
  const reading = readReport(child.stdio[3] as Readable, options.outputBytes + REPORT_BYTES);
  const patience = new AbortController();
  const outOfTime = delay(options.timeoutMs, 'timeout' as const, { signal: patience.signal });
  const stopped = new Promise<'stopped'>((resolve) => {
    if (options.signal.aborted) resolve('stopped');
    options.signal.addEventListener('abort', () => resolve('stopped'), { once: true, signal: patience.signal });
  });
  try {
    const first = await Promise.race([reading, outOfTime, stopped]);
    if (typeof first === 'string' || 'tooLarge' in first) await terminate(process);
    else await Promise.race([exited, delay(STEP_MS, undefined, { ref: false })]);
    signalGroup(process, 'SIGKILL');
    await endStrays(mark, { since: { pid: before, at: startedAt } });
    const { exitCode, signal } = await exited;
    const said = { stdout: await process.stdout.end(), stderr: await process.stderr.end() };
    if (typeof first === 'string') return { type: first, ...said };
    if ('tooLarge' in first) return { type: 'too-large', bytes: first.tooLarge, ...said };
    const report = parseReport(first.bytes);
    if (report !== undefined) return { type: 'reported', ...report, ...said };
    const begun = first.bytes.byteLength > 0;
    return { type: 'died', begun, exitCode, signal, outOfMemory: /out of memory/i.test(said.stderr), ...said };
  } finally {
    patience.abort();
    outOfTime.catch(() => {});
    for (const stream of child.stdio) stream?.destroy();
  }
}

/** Sends SIGTERM, and SIGKILL after a pause (S4-15). */
async function terminate(process: StartedProcess): Promise<void> {
  signalGroup(process, 'SIGTERM');
  await Promise.race([process.exited, delay(STEP_MS, undefined, { ref: false })]);
}

async function readReport(stream: Readable, most: number): Promise<{ bytes: Buffer } | { tooLarge: number }> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of stream) {
      size += chunk.length;
      if (size > most) return { tooLarge: size };
      chunks.push(chunk);
    }
  } catch {
    // The bytes are incomplete, so they are no report.
  }
  return { bytes: Buffer.concat(chunks) };
}
