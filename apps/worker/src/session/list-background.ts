import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { LiveShell } from '../shell/live-shell.ts';
import type { BackgroundProcess } from '../shell/shell.ts';

const SHOWN_CHARS = 200;
/** The keeper tells 511 bytes of a command line, less where a character would be cut. */
const CUT_FROM_BYTES = 508;

/** What runs beside the shell, as it may be shown: command lines hold what a caller gave, secrets too. */
export async function listBackground(
  shell: LiveShell,
  redaction: SessionRedaction,
  signal: AbortSignal,
): Promise<BackgroundProcess[]> {
  const processes = await shell.background({ signal });
  return processes.map(({ pid, command }) => ({ pid, command: show(command, redaction) }));
}

function show(command: string, redaction: SessionRedaction): string {
  const bytes = Buffer.from(command);
  if (bytes.length < CUT_FROM_BYTES) return cut(redaction.text(command));
  // It may end within a secret: shown is what no continuation could change.
  const redactor = redaction.createRedactor({});
  const settled = redactor.push(bytes).toString();
  return redactor.blocked === undefined ? cut(`${settled}…`) : redaction.text(command);
}

function cut(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS).toWellFormed()}…`;
}
