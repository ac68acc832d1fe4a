import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ChildRequest } from './child/request.ts';
import { compileCache, runsFromSource } from './compile-cache.ts';

/** How long the rest of what an ended process printed is waited for. */
const REST_MS = 1_000;
const TAIL_BYTES = 4_096;

const main = fileURLToPath(new URL(`./child/main.${runsFromSource ? 'ts' : 'js'}`, import.meta.url));
export const nodeArguments = [...(runsFromSource ? ['--conditions=@shellfleet/source'] : []), '--no-warnings'];

/** What is fixed when a process starts. */
export interface ProcessOptions {
  memoryBytes: number;
  /** Memory of the runtime itself. */
  dataBytes: number;
  env: Record<string, string>;
  /** Is in the environment of the process and of every process that it starts. Each process has another one. */
  mark: string;
  /** URLs of modules that Node loads before ours. */
  preload?: readonly string[];
}

/** A process that waits for its one request. */
export interface StartedProcess {
  child: ChildProcess;
  mark: string;
  exited: Promise<{ exitCode: number | null; signal: string | null }>;
  stdout: Tail;
  stderr: Tail;
}

interface Tail {
  end(): Promise<string>;
}

/** Ends with the worker, writes no core file, and has a memory limit of the kernel. The heap limit of Node gives a better message. */
export function startProcess({ memoryBytes, dataBytes, env, mark, preload = [] }: ProcessOptions): StartedProcess {
  const limits = [`--data=${dataBytes + memoryBytes}`, '--core=0'];
  const heap = `--max-old-space-size=${Math.floor(memoryBytes / 1_048_576)}`;
  const imports = preload.map((url) => `--import=${url}`);
  const program = ['prlimit', ...limits, '--', process.execPath, heap, ...nodeArguments, ...imports, main];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...program], {
    cwd: '/',
    // No variable of the worker's own: neither its Redis nor its keys. Most of the time of a short call is compilation, so the compile cache of
    // the worker is used; the process removes NODE_COMPILE_CACHE before the tool is loaded.
    env: { ...env, NODE_COMPILE_CACHE: compileCache, SHELLFLEET_TOOL_CALL: mark },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  // A process that does not read its input is no error.
  for (const stream of child.stdio) stream?.on('error', () => {});
  const [stdout, stderr] = [keepTail(child.stdout as Readable), keepTail(child.stderr as Readable)];
  return { child, mark, exited: waitForExit(child), stdout, stderr };
}

export function sendRequest({ child }: StartedProcess, request: ChildRequest, args: string): void {
  child.stdin?.end(`${JSON.stringify(request)}\n${args}`);
}

export function signalGroup({ child }: StartedProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is empty.
  }
}

/** Resolves also when the process could not be started. */
function waitForExit(child: ChildProcess): Promise<{ exitCode: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ exitCode: 127, signal: null }));
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

/** The last bytes that it printed. */
function keepTail(stream: Readable): Tail {
  let tail = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES);
  });
  const closed = once(stream, 'close').catch(() => {});
  return {
    async end() {
      // Its writers are gone, so this is the rest of the pipe.
      await Promise.race([closed, delay(REST_MS, undefined, { ref: false })]);
      return tail.toString('utf8');
    },
  };
}
