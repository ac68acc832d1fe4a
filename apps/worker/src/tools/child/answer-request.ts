import { REDACTED_BY_WORKER_BYTES, redactJsonText } from '../redact-json.ts';
import { runTool } from './call-tool.ts';
import { describeThrown } from './describe-thrown.ts';
import { BEGUN, type ChildReport, type ChildRequest, REPORT_DESCRIPTOR } from './request.ts';

const { closeSync, readFileSync, writeSync } = process.getBuiltinModule('node:fs');
const { dirname } = process.getBuiltinModule('node:path');

const abort = new AbortController();
let reported = false;

process.on('SIGTERM', () => abort.abort(new Error('The call is to end.')));
// An error that is thrown outside of the promise of `run` ends the call, too.
process.on('uncaughtException', (thrown) => report(raised(thrown)));
// The event loop is empty, so the promise of `run` can never settle.
process.on('beforeExit', () =>
  report(failed('died', 'subprocess exited without producing a result: its promise never settles')),
);

const { request, args: argsText } = readRequest();
// No code of a tool runs before this byte is sent. A process that dies without it has done nothing of its call.
writeSync(REPORT_DESCRIPTOR, BEGUN);
process.chdir(dirname(request.module));

if (request.type === 'describe') {
  const dataBytes = readDataBytes();
  // Imported here because no call needs this module.
  const { describeModule } = await import('./describe-module.ts');
  await describeModule(request.module).then(
    (tools) => report({ type: 'described', tools, dataBytes }),
    (error: unknown) => report({ type: 'refused', message: describeThrown(error) }),
  );
} else {
  const args: unknown = JSON.parse(argsText);
  await runTool(request, args, abort.signal).then(
    async (done) => {
      if (typeof done !== 'string') return report({ type: 'failed', error: done });
      const redacted = done.length > REDACTED_BY_WORKER_BYTES;
      report({ type: 'output', redacted }, redacted ? await redactOutput(done) : done);
    },
    (thrown: unknown) => report(raised(thrown)),
  );
}

/** Reads the request and the arguments. Blocks, since `process.stdin` would load network code. */
function readRequest(): { request: ChildRequest; args: string } {
  const input = readFileSync(0);
  const end = input.indexOf('\n');
  return { request: JSON.parse(input.toString('utf8', 0, end)), args: input.toString('utf8', end + 1) };
}

/** Returns the private memory of this process as RLIMIT_DATA counts it. */
function readDataBytes(): number {
  const [, kib = '0'] = /^VmData:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kib) * 1024;
}

async function redactOutput(text: string): Promise<string> {
  const { createTokenRedactor } = await import('../redact-tokens.ts');
  return redactJsonText(text, createTokenRedactor());
}

function report(header: ChildReport, body = ''): never {
  if (!reported) {
    reported = true;
    writeAll(Buffer.from(`${JSON.stringify(header)}\n${body}`));
    // Closed before the exit, so that the tool's exit handlers cannot write to it.
    closeSync(REPORT_DESCRIPTOR);
  }
  process.exit(0);
}

function writeAll(bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(REPORT_DESCRIPTOR, bytes, written);
}

function raised(thrown: unknown): ChildReport {
  const message = describeThrown(thrown);
  return isOutOfMemory(thrown)
    ? failed('memory', `tool ran out of memory (${message})`)
    : failed('raised', `tool raised ${message}`);
}

function failed(code: 'died' | 'memory' | 'raised', message: string): ChildReport {
  return { type: 'failed', error: { code, message: `Shellfleet: ${message}` } };
}

function isOutOfMemory(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return (
    (thrown as NodeJS.ErrnoException).code === 'ERR_MEMORY_ALLOCATION_FAILED' ||
    (thrown instanceof RangeError && thrown.message === 'Array buffer allocation failed')
  );
}
