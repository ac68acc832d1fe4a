import type { MarkedShell } from './marked-shell.ts';
import { eachInTurn, type Row } from './row.ts';

/**
 * Creates the row of a way to keep shells. `open` starts a shell: one at the beginning, and the others when they are
 * first needed, in the warm-up.
 */
export async function createKeptShellsRow<Name extends string>(
  name: Name,
  open: () => Promise<MarkedShell>,
  close: () => Promise<void>,
): Promise<Omit<Row, 'name'> & { name: Name }> {
  const shells: MarkedShell[] = [];
  const add = async (): Promise<void> => {
    const shell = await open();
    await shell.run('true');
    shells.push(shell);
  };
  await add();
  return {
    name,
    workerPid: undefined,
    one: (script) => shells[0]!.run(script),
    async many(sessions, perSession) {
      while (shells.length < sessions) await add();
      await eachInTurn(sessions, perSession, (session) => shells[session]!.run('echo hi'));
    },
    close,
  };
}
