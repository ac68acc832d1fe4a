import type { HostReply } from '@shellfleet/protocol';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { SessionContext } from '../run/session-context.ts';
import type { BackgroundProcess, Shell } from '../shell/shell.ts';

const SHOWN_CHARS = 200;
/**
 * Least length of a line that the keeper may have cut. The keeper cuts at 511 bytes, or before a character that crosses
 * this limit.
 */
const CUT_FROM_BYTES = 508;

/** Lists the processes in a session's sandbox besides the shell, redacted, and tells how commands get into that. */
export async function backgroundOf({ shell, redaction, signal }: SessionContext): Promise<HostReply<'background'>> {
  const { live } = shell;
  if (live === undefined || shell.death !== undefined) return { processes: [] };
  const processes = await listBackgroundProcesses(live, redaction, signal);
  return { processes, ...(live.way === undefined ? {} : { way: live.way }) };
}

/** Redacts processes, as command lines may contain secrets. */
export async function listBackgroundProcesses(
  shell: Shell,
  redaction: SessionRedaction,
  signal: AbortSignal,
): Promise<BackgroundProcess[]> {
  const processes = await shell.background({ signal });
  return processes.map(({ pid, command }) => ({ pid, command: show(command, redaction) }));
}

function show(command: string, redaction: SessionRedaction): string {
  const bytes = Buffer.from(command);
  if (bytes.length < CUT_FROM_BYTES) return cut(redaction.text(command));
  // The line may be cut inside a secret, so only text that no continuation can change is shown.
  const redactor = redaction.createMessageRedactor({});
  const settled = redactor.push(bytes).toString();
  return redactor.blocked === undefined ? cut(`${settled}…`) : redaction.text(command);
}

function cut(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS).toWellFormed()}…`;
}
