import { type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { CleanOutput } from '../output/clean-output.ts';
import type { SessionRedaction } from './session-redaction.ts';
import type { ShellTurns } from './shell-turns.ts';

/** What a message shows of a command of ours that failed; it is cut when it has been redacted. */
const KEPT_OUTPUT = { streamBytes: 1, maxBytes: 4_096, maxLines: 100, keep: 'tail', encoding: 'utf8' } as const;

/** Gives a fresh shell the session's variables and directory, and runs the startup commands. Throws SESSION_START_FAILED. */
export async function prepareShell(
  turns: ShellTurns,
  spec: ResolvedSessionSpec,
  redaction: SessionRedaction,
  sessionId: string,
  signal: AbortSignal,
): Promise<void> {
  if (turns.shell.hello.state === 'no-shell') throw noShell(sessionId, turns.shell.hello.problem);
  const timeoutMs = spec.startupTimeoutMs;
  await runOwn(turns, redaction, toSetUp(spec), `Setting up session ${sessionId}`, timeoutMs, signal);
  for (const command of spec.startupCommands) {
    await runOwn(turns, redaction, command, `Startup command '${command}' of session ${sessionId}`, timeoutMs, signal);
  }
}

/** Runs the shutdown commands; what fails is returned in words, and stops nothing. */
export async function runShutdownCommands(
  turns: ShellTurns,
  spec: ResolvedSessionSpec,
  redaction: SessionRedaction,
): Promise<string[]> {
  const problems: string[] = [];
  for (const command of spec.shutdownCommands) {
    const what = `Shutdown command '${command}'`;
    await runOwn(turns, redaction, command, what, spec.commandTimeoutMs).catch((error: unknown) =>
      problems.push(String(error)),
    );
  }
  return problems;
}

function toSetUp(spec: ResolvedSessionSpec): string {
  const exports = Object.entries({ ...spec.env, ...spec.secrets }).map(
    ([name, value]) => `export ${name}=${quote(value)}`,
  );
  return [...exports, `cd -- ${quote(spec.cwd)}`].join('\n');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command of the session's own, not of its mailbox. The signal stops it. */
async function runOwn(
  turns: ShellTurns,
  redaction: SessionRedaction,
  script: string,
  what: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const fail = (message: string) => failed(redaction.text(message));
  if (signal?.aborted) throw fail(`${what} was not run: nobody waits for it any more.`);
  const entryId = ulid();
  const stop = () => turns.shell.stop(entryId, { killGraceMs: 0 });
  signal?.addEventListener('abort', stop, { once: true });
  const clean = new CleanOutput({ ...KEPT_OUTPUT, createRedactor: redaction.createRedactor });
  const ended = turns.start({ type: 'command', entryId, script, timeoutMs }, (stream, offset, bytes) => {
    clean.push(stream, offset, bytes);
    clean.release();
    turns.shell.ack(entryId, stream, offset + bytes.byteLength);
  });
  const turn = await ended.finally(() => signal?.removeEventListener('abort', stop));
  if (turn.type !== 'ended') throw fail(`${what} was not run: the shell answered ${turn.reason}.`);
  const { reason, exitCode } = turn.end;
  if (reason === 'exited' && exitCode === 0) return;
  const how = reason === 'wall' ? `took longer than ${timeoutMs} ms` : `failed with exit code ${exitCode}`;
  clean.end();
  const kept = clean.blocked === undefined ? clean.texts().output.trim() : `withheld: detected ${clean.blocked.type}`;
  throw fail(`${what} ${how}.${kept === '' ? '' : ` Its output: ${kept}`}`);
}

function noShell(sessionId: string, problem: string | undefined): ShellfleetError {
  return failed(
    `Session ${sessionId} cannot start: ${problem ?? 'its image has no /bin/sh'}. Choose an image with a POSIX shell.`,
  );
}

function failed(message: string): ShellfleetError {
  return new ShellfleetError('SESSION_START_FAILED', message);
}
