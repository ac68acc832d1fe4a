import { type IPty, spawn } from '@lydell/node-pty'; // node-pty with a built add-on, so that an install needs no compiler
import type Docker from 'dockerode';
import { startBenchContainer } from './bench-container.ts';
import { createKeptShellsRow } from './kept-shells.ts';
import { MarkedShell } from './marked-shell.ts';
import type { Row } from './row.ts';

/**
 * The row of one open shell per session on a terminal: node-pty runs `docker exec -it CONTAINER bash`, and commands
 * are typed into it.
 */
export async function createNodePtyRow(docker: Docker, image: string, dockerHost: string): Promise<Row> {
  const container = await startBenchContainer(docker, image, ['sleep', 'infinity']);
  const terminals: IPty[] = [];
  const open = async (): Promise<MarkedShell> => {
    const args = ['exec', '-it', container.id, 'bash', '--norc', '--noprofile', '--noediting'];
    const terminal = spawn('docker', args, { env: { ...process.env, DOCKER_HOST: dockerHost } });
    terminals.push(terminal);
    const shell = new MarkedShell((text) => terminal.write(text));
    terminal.onData((text) => shell.receive(text));
    // Without this, the terminal would echo every command, and end each line with a carriage return.
    await shell.send('PS1= PS2=; stty -echo -onlcr');
    return shell;
  };
  const close = async (): Promise<void> => {
    for (const terminal of terminals) terminal.kill();
    await container.remove({ force: true });
  };
  return createKeptShellsRow('node-pty', open, close);
}
