import { type IPty, spawn } from '@lydell/node-pty'; // node-pty with its add-on built: installing it needs no compiler
import type Docker from 'dockerode';
import { startBenchContainer } from './bench-container.ts';
import { MarkedShell } from './marked-shell.ts';
import { eachInTurn, type Row } from './row.ts';

/** A shell kept open per session on a terminal: node-pty runs `docker exec -it CONTAINER bash`, and commands are typed into it. */
export async function createNodePtyRow(docker: Docker, image: string, dockerHost: string): Promise<Row> {
  const container = await startBenchContainer(docker, image, ['sleep', 'infinity']);
  const terminals: IPty[] = [];
  const shells: MarkedShell[] = [];
  const open = async (): Promise<void> => {
    const args = ['exec', '-it', container.id, 'bash', '--norc', '--noprofile', '--noediting'];
    const terminal = spawn('docker', args, { env: { ...process.env, DOCKER_HOST: dockerHost } });
    terminals.push(terminal);
    const shell = new MarkedShell((text) => terminal.write(text));
    terminal.onData((text) => shell.receive(text));
    // Without it every command would come back with the output, and each line with a carriage return.
    await shell.send('PS1= PS2=; stty -echo -onlcr');
    await shell.run('true');
    shells.push(shell);
  };
  await open();
  return {
    name: 'node-pty',
    workerPid: undefined,
    one: (script) => shells[0]!.run(script),
    async many(sessions, perSession) {
      while (shells.length < sessions) await open(); // in the warm-up
      await eachInTurn(sessions, perSession, (session) => shells[session]!.run('echo hi'));
    },
    async close() {
      for (const terminal of terminals) terminal.kill();
      await container.remove({ force: true });
    },
  };
}
