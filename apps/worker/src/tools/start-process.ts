import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ChildRequest } from './child/request.ts';
import { compileCache, runsFromSource } from './compile-cache.ts';

/** Time to wait for the remaining output of a process that has ended. */
const REST_MS = 1_000;
const TAIL_BYTES = 4_096;

const main = fileURLToPath(new URL(`./child/main.${runsFromSource ? 'ts' : 'js'}`, import.meta.url));
export const nodeArguments = [...(runsFromSource ? ['--conditions=@shellfleet/source'] : []), '--no-warnings'];

export interface ProcessOptions {
  memoryBytes: number;
  /** Memory that the runtime itself uses. */
  dataBytes: number;
  env: Record<string, string>;
  /** Unique value in the environment of the process and of all its descendants. */
  mark: string;
  /** URLs of modules that Node loads before ours. */
  preload?: readonly string[];
}

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

/** Starts a process that ends with the worker. Node's heap limit gives a better message than the kernel's limit. */
export function startProcess({ memoryBytes, dataBytes, env, mark, preload = [] }: ProcessOptions): StartedProcess {
  const limits = [`--data=${dataBytes + memoryBytes}`, '--core=0'];
  const heap = `--max-old-space-size=${Math.floor(memoryBytes / 1_048_576)}`;
  const imports = preload.map((url) => `--import=${url}`);
  const program = ['prlimit', ...limits, '--', process.execPath, heap, ...nodeArguments, ...imports, main];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...program], {
    cwd: '/',
    // The process gets no variables of the worker, such as its keys. The compile cache saves most of the time of a
    // short call. The process deletes that variable before it loads the tool.
    env: { ...env, NODE_COMPILE_CACHE: compileCache, SHELLFLEET_TOOL_CALL: mark },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  // A process that does not read its input causes no error.
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
  } catch {}
}

/** Resolves also if the process could not be started. */
function waitForExit(child: ChildProcess): Promise<{ exitCode: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ exitCode: 127, signal: null }));
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }));
  });
}

function keepTail(stream: Readable): Tail {
  let tail = Buffer.alloc(0);
  stream.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES);
  });
  const closed = once(stream, 'close').catch(() => {});
  return {
    async end() {
      // All writers are gone, so only the rest of the pipe is read.
      await Promise.race([closed, delay(REST_MS, undefined, { ref: false })]);
      return tail.toString('utf8');
    },
  };
}
