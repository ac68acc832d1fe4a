import {
  ensureShellfleetError,
  IMAGE_CWD,
  quoteWord,
  type ResolvedSessionSpec,
  ShellfleetError,
} from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { CleanOutput } from '../output/clean-output.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { CommandStart, Shell, ShellEnd } from './shell.ts';

/** Prepares a fresh shell by the spec. Throws SESSION_START_FAILED, also when another shell replaces it. */
export async function prepareShell(
  live: Shell,
  spec: ResolvedSessionSpec,
  redaction: SessionRedaction,
  sessionId: string,
  shellNumber: number,
  signal: AbortSignal,
): Promise<void> {
  if (live.hello.state === 'no-shell') throw noShell(sessionId, live.hello.problem);
  const timeoutMs = spec.startupTimeoutMs;
  const run = async (script: string, what: string) => {
    const { shell } = await runOwn(live, redaction, { script, timeoutMs, shellNumber }, what, signal);
    if (shell.shellNumber === shellNumber) return;
    throw failed(redaction.text(`${what} replaced the shell: ${shell.reason ?? 'it ended'}.`));
  };
  await run(toSetUp(spec), `Setting up session ${sessionId}`);
  for (const command of spec.startupCommands) await run(command, `Startup command '${command}'`);
}

/** Runs all shutdown commands. Returns a message for each that failed. */
export async function runShutdownCommands(
  live: Shell,
  spec: ResolvedSessionSpec,
  redaction: SessionRedaction,
): Promise<string[]> {
  const problems: string[] = [];
  for (const command of spec.shutdownCommands) {
    const what = `Shutdown command '${command}'`;
    const start = { script: command, timeoutMs: spec.commandTimeoutMs };
    await runOwn(live, redaction, start, what).catch((error: unknown) =>
      problems.push(ensureShellfleetError(error).message),
    );
  }
  return problems;
}

function toSetUp(spec: ResolvedSessionSpec): string {
  const exports = Object.entries({ ...spec.env, ...spec.secrets }).map(
    ([name, value]) => `export ${name}=${quoteWord(value)}`,
  );
  // A variable that cannot be set (readonly) fails the preparation.
  const enter = spec.cwd === IMAGE_CWD ? ':' : `cd -- ${quoteWord(spec.cwd)}`;
  return [...exports, enter].join(' &&\n');
}

/** Runs a startup or shutdown command, which is not in the mailbox. */
async function runOwn(
  live: Shell,
  redaction: SessionRedaction,
  start: Pick<CommandStart, 'script' | 'timeoutMs' | 'shellNumber'>,
  what: string,
  signal?: AbortSignal,
): Promise<ShellEnd> {
  const fail = (message: string) => failed(redaction.text(message));
  if (signal?.aborted) throw fail(`${what} was not run: the session is closing.`);
  const entryId = ulid();
  const stop = () => live.stop(entryId, { killGraceMs: 0 });
  signal?.addEventListener('abort', stop, { once: true });
  // The end of its output, for an error message.
  const texts = { maxBytes: 4_096, maxLines: 100, keep: 'tail', encoding: 'utf8' } as const;
  const clean = new CleanOutput({ createRedactor: redaction.createMessageRedactor, texts });
  const running = live.start(
    { type: 'command', entryId, ...start },
    {
      onOutput: (stream, offset, bytes) => {
        clean.push(stream, offset, bytes);
        live.ack(entryId, stream, offset + bytes.byteLength);
      },
      received: () => clean.received,
    },
  );
  const ended = await running.finally(() => signal?.removeEventListener('abort', stop));
  if (ended.type === 'refused' && ended.reason === 'other-shell')
    throw fail(`${what} was not run: the shell ended before it.`);
  if (ended.type !== 'ended') throw fail(`${what} was not run: the shell answered ${ended.reason}.`);
  const how = describeFailure(ended.end, start.timeoutMs);
  if (how === undefined) return ended.end;
  clean.end();
  const kept = clean.blocked === undefined ? clean.texts().output.trim() : `withheld: detected ${clean.blocked.type}`;
  throw fail(`${what} ${how}.${kept === '' ? '' : ` Its output: ${kept}`}`);
}

/** Describes how a command failed. Undefined when it succeeded. */
function describeFailure({ reason, exitCode, signal }: ShellEnd, timeoutMs?: number): string | undefined {
  if (reason === 'wall') return `took longer than ${timeoutMs} ms`;
  if (reason === 'oom') return 'ran out of memory';
  if (reason === 'host-memory') return 'was killed, because the memory of its host ran out';
  if (reason === 'cancelled') return 'was stopped: the session is closing';
  if (exitCode !== 0) return `failed with exit code ${exitCode}`;
  return reason === 'exited' ? undefined : `was ended by ${signal ?? reason}`;
}

function noShell(sessionId: string, problem: string | undefined): ShellfleetError {
  return failed(
    `Session ${sessionId} cannot start: ${problem ?? 'its image has no /bin/sh'}. Choose an image with a POSIX shell.`,
  );
}

function failed(message: string): ShellfleetError {
  return new ShellfleetError('SESSION_START_FAILED', message);
}
