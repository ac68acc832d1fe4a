import { type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import type { ShellTurns } from './shell-turns.ts';

const KEPT_OUTPUT_BYTES = 4_096;

/** Gives a fresh shell the session's variables and directory, and runs the startup commands. Throws SESSION_START_FAILED. */
export async function prepareShell(
  turns: ShellTurns,
  spec: ResolvedSessionSpec,
  sessionId: string,
  signal: AbortSignal,
): Promise<void> {
  if (turns.shell.hello.state === 'no-shell') throw noShell(sessionId, turns.shell.hello.problem);
  const timeoutMs = spec.startupTimeoutMs;
  await runOwn(turns, toSetUp(spec), `Setting up session ${sessionId}`, timeoutMs, signal);
  for (const command of spec.startupCommands) {
    await runOwn(turns, command, `Startup command '${command}' of session ${sessionId}`, timeoutMs, signal);
  }
}

/** Runs the shutdown commands; what fails is returned in words, and stops nothing. */
export async function runShutdownCommands(turns: ShellTurns, spec: ResolvedSessionSpec): Promise<string[]> {
  const problems: string[] = [];
  for (const command of spec.shutdownCommands) {
    const what = `Shutdown command '${command}'`;
    await runOwn(turns, command, what, spec.commandTimeoutMs).catch((error: unknown) => problems.push(String(error)));
  }
  return problems;
}

function toSetUp(spec: ResolvedSessionSpec): string {
  const exports = Object.entries(spec.env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [...exports, `cd -- ${quote(spec.cwd)}`].join('\n');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A command of the session's own, not of its mailbox. The signal stops it. */
async function runOwn(
  turns: ShellTurns,
  script: string,
  what: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<void> {
  if (signal?.aborted) throw failed(`${what} was not run: nobody waits for it any more.`);
  const entryId = ulid();
  const stop = () => turns.shell.stop(entryId, { killGraceMs: 0 });
  signal?.addEventListener('abort', stop, { once: true });
  let kept = '';
  const ended = turns.start({ type: 'command', entryId, script, timeoutMs }, (stream, offset, bytes) => {
    kept = (kept + Buffer.from(bytes).toString('utf8')).slice(-KEPT_OUTPUT_BYTES);
    turns.shell.ack(entryId, stream, offset + bytes.byteLength);
  });
  const turn = await ended.finally(() => signal?.removeEventListener('abort', stop));
  if (turn.type !== 'ended') throw failed(`${what} was not run: the shell answered ${turn.reason}.`);
  const { reason, exitCode } = turn.end;
  if (reason === 'exited' && exitCode === 0) return;
  const how = reason === 'wall' ? `took longer than ${timeoutMs} ms` : `failed with exit code ${exitCode}`;
  throw failed(`${what} ${how}.${kept.trim() === '' ? '' : ` Its output: ${kept.trim()}`}`);
}

function noShell(sessionId: string, problem: string | undefined): ShellfleetError {
  return failed(
    `Session ${sessionId} cannot start: ${problem ?? 'its image has no /bin/sh'}. Choose an image with a POSIX shell.`,
  );
}

function failed(message: string): ShellfleetError {
  return new ShellfleetError('SESSION_START_FAILED', message);
}
