import { type CommandPayload, IMAGE_CWD, type ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Directory } from '../admission/admission.ts';
import type { SessionShell } from '../shell/session-shell.ts';

/** Returns the directory of a command, if it is certain. `opens` means that it has a fresh shell. */
export async function directoryOf(
  { cwd }: Pick<CommandPayload, 'cwd'>,
  opens: boolean,
  { cwd: begins, startupCommands }: Pick<ResolvedSessionSpec, 'cwd' | 'startupCommands'>,
  shell: Pick<SessionShell, 'ready' | 'hasState' | 'directory'>,
): Promise<Directory> {
  // The answer is equal before and after the opening of the shell, so that both decisions are about one question.
  if (cwd === undefined && opens && startupCommands.length > 0)
    return { unknown: `where its startup commands leave a fresh shell, which begins in ${inWords(begins)}` };
  if (!shell.ready && cwd === undefined) {
    if (shell.hasState) return { unknown: 'that of its shell, which cannot be reached at present' };
    return begins === IMAGE_CWD ? { unknown: inWords(begins) } : { path: begins };
  }
  if (!shell.ready && cwd !== undefined) return { path: cwd };
  const path = await shell.directory(cwd);
  return path === undefined ? { unknown: NOT_TOLD } : { path };
}

const NOT_TOLD = 'one that is not there any more, or that its keeper does not tell';

const inWords = (cwd: string) => (cwd === IMAGE_CWD ? 'the directory that its image names' : cwd);
