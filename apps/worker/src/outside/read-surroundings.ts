import { randomBytes } from 'node:crypto';
import { ShellfleetError } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import type { SessionShell } from '../shell/session-shell.ts';
import { parseSurroundings, type Surroundings } from './parse-surroundings.ts';

/** Where every sandbox has it. The image may have no program that prints variables. */
const KEEPER = '/.shellfleet/keeper';
const TIMEOUT_MS = 10_000;
/** Of what the shell prints; the script that sets the variables again is at most 1 MiB. */
const MOST_BYTES = 512 * 1024;

/** Prints the directory and the exported variables. A subshell leaves nothing in the shell, and `$?` is as it was: `$1` here. */
const scriptOf = (mark: string) => `(
  \\command set +eux -- "$?"
  \\command printf '%s\\0' ${mark}
  \\command pwd -P
  \\command printf '\\0'
  \\command ${KEEPER} environment || \\command printf failed
  \\command printf '%s\\0' ${mark}
  \\command exit "$1"
)`;

/** Asks the session's own shell, which is ready and idle. Throws SANDBOX_UNAVAILABLE when it does not answer as asked. */
export async function readSurroundings(shell: SessionShell, session: string): Promise<Surroundings> {
  const { live } = shell;
  if (live === undefined) throw notAnswered(session, 'it has no shell');
  const entryId = ulid();
  const mark = randomBytes(16).toString('hex');
  const printed: Uint8Array[] = [];
  let bytes = 0;
  const ended = await live.start(
    { type: 'command', entryId, script: scriptOf(mark), timeoutMs: TIMEOUT_MS },
    {
      onOutput(stream, offset, piece) {
        live.ack(entryId, stream, offset + piece.byteLength);
        if (stream !== 'stdout') return;
        bytes += piece.byteLength;
        if (bytes <= MOST_BYTES) printed.push(Uint8Array.from(piece));
      },
    },
  );
  if (ended.type !== 'ended') throw notAnswered(session, `its shell answered ${ended.reason}`);
  shell.recordShell(ended.end.shell.shellNumber, ended.end.shell.reason ?? 'the shell ended');
  if (bytes > MOST_BYTES) throw notAnswered(session, `it exports more than ${MOST_BYTES} bytes`);
  const surroundings = parseSurroundings(Buffer.concat(printed), mark);
  if (surroundings === undefined) throw notAnswered(session, 'its shell did not say what it exports');
  return surroundings;
}

function notAnswered(session: string, why: string): ShellfleetError {
  const message = `The command was not run outside the sandbox of session ${session}: ${why}.`;
  return new ShellfleetError('SANDBOX_UNAVAILABLE', message);
}
