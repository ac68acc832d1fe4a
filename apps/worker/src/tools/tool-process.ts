import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ChildReport, ChildRequest } from './child/request.ts';
import { compileCache, runsFromSource } from './compile-cache.ts';
import { parseReport, REPORT_BYTES } from './parse-report.ts';
import { endStrays } from './stray-processes.ts';

// One process for each call.
//
// TOOL-PROCESS-1. The report is read completely before the exit is awaited, because a report may be larger than a pipe.
// TOOL-PROCESS-2. When this returns, the process, its group and all processes with its mark are gone.
// TOOL-PROCESS-3. The worker receives only one report of limited size and the last bytes that the process printed.

/** Time between SIGTERM and SIGKILL, and again until SIGKILL takes effect. */
const STEP_MS = 1_000;
const TAIL_BYTES = 4_096;

const main = fileURLToPath(new URL(`./child/main.${runsFromSource ? 'ts' : 'js'}`, import.meta.url));
const nodeArguments = [...(runsFromSource ? ['--conditions=@shellfleet/source'] : []), '--no-warnings'];

export interface ToolProcessOptions {
  request: ChildRequest;
  /** JSON, for a call. */
  args?: string;
  timeoutMs: number;
  memoryBytes: number;
  /** Memory of the runtime itself. */
  dataBytes: number;
  outputBytes: number;
  env: Record<string, string>;
  /** Identifies the call in the environment of every process that it starts. */
  mark: string;
  cwd: string;
  /** Aborts when the call is stopped early. */
  signal: AbortSignal;
}

export type ToolProcessEnd = { stdout: string; stderr: string } & (
  | { type: 'reported'; report: ChildReport; body: Buffer }
  | { type: 'timeout' | 'stopped' }
  | { type: 'too-large'; bytes: number }
  | { type: 'died'; exitCode: number | null; signal: string | null; outOfMemory: boolean }
);

export async function runToolProcess(options: ToolProcessOptions): Promise<ToolProcessEnd> {
  const child = start(options);
  const tails = { stdout: keepTail(child.stdout as Readable), stderr: keepTail(child.stderr as Readable) };
  const exited = waitForExit(child);
  const reading = readReport(child.stdio[3] as Readable, options.outputBytes + REPORT_BYTES);
  const patience = new AbortController();
  const outOfTime = delay(options.timeoutMs, 'timeout' as const, { signal: patience.signal });
  const stopped = new Promise<'stopped'>((resolve) => {
    if (options.signal.aborted) resolve('stopped');
    options.signal.addEventListener('abort', () => resolve('stopped'), { once: true, signal: patience.signal });
  });
  try {
    const first = await Promise.race([reading, outOfTime, stopped]);
    if (typeof first === 'string' || 'tooLarge' in first) await terminate(child, exited);
    else await Promise.race([exited, delay(STEP_MS, undefined, { ref: false })]);
    signalGroup(child, 'SIGKILL');
    await endStrays(options.mark);
    const { exitCode, signal } = await exited;
    const said = { stdout: await tails.stdout.end(), stderr: await tails.stderr.end() };
    if (typeof first === 'string') return { type: first, ...said };
    if ('tooLarge' in first) return { type: 'too-large', bytes: first.tooLarge, ...said };
    const report = parseReport(first.bytes);
    if (report !== undefined) return { type: 'reported', ...report, ...said };
    return { type: 'died', exitCode, signal, outOfMemory: /out of memory/i.test(said.stderr), ...said };
  } finally {
    patience.abort();
    outOfTime.catch(() => {});
    for (const stream of child.stdio) stream?.destroy();
  }
}

/** Ends with the worker, writes no core file, and has a memory limit of the kernel. The heap limit of Node gives a better message. */
function start({ request, args = '', memoryBytes, dataBytes, env, mark, cwd }: ToolProcessOptions): ChildProcess {
  const limits = [`--data=${dataBytes + memoryBytes}`, '--core=0'];
  const heap = `--max-old-space-size=${Math.floor(memoryBytes / 1_048_576)}`;
  const program = ['prlimit', ...limits, '--', process.execPath, heap, ...nodeArguments, main];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...program], {
    cwd,
    // No variable of the worker's own: neither its Redis nor its keys. Most of the time of a short call is compilation, so the compile cache of
    // the worker is used; the process removes NODE_COMPILE_CACHE before the tool is loaded.
    env: { ...env, NODE_COMPILE_CACHE: compileCache, SHELLFLEET_TOOL_CALL: mark },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  // A process that does not read its input is no error.
  for (const stream of child.stdio) stream?.on('error', () => {});
  child.stdin?.end(`${JSON.stringify(request)}\n${args}`);
  return child;
}

/** Resolves also when the process could not be started. */
function waitForExit(child: ChildProcess): Promise<{ exitCode: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ exitCode: 127, signal: null }));
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

/** SIGTERM, then SIGKILL (S4-15). */
async function terminate(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  signalGroup(child, 'SIGTERM');
  await Promise.race([exited, delay(STEP_MS, undefined, { ref: false })]);
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is empty.
  }
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
    // Incomplete: not a report.
  }
  return { bytes: Buffer.concat(chunks) };
}

/** The last bytes that it printed. */
function keepTail(stream: Readable): { end(): Promise<string> } {
  let tail = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES);
  });
  const closed = once(stream, 'close').catch(() => {});
  return {
    async end() {
      // Its writers are gone, so this is the rest of the pipe.
      await Promise.race([closed, delay(STEP_MS, undefined, { ref: false })]);
      return tail.toString('utf8');
    },
  };
}
