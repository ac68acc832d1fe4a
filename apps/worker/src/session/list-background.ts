import type { BackgroundProcess, Shell } from '../shell/shell.ts';

/** A secret that begins within it is whole in what the keeper tells (512 bytes), so that it is found before the cut. */
const SHOWN_CHARS = 200;

/** What runs beside the shell, as it may be shown: command lines hold what a caller gave, secrets too. */
export async function listBackground(
  shell: Shell,
  redact: (text: string) => string,
  signal: AbortSignal,
): Promise<BackgroundProcess[]> {
  const processes = await shell.background({ signal });
  return processes.map(({ pid, command }) => ({ pid, command: cut(redact(command)) }));
}

function cut(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS).toWellFormed()}…`;
}
