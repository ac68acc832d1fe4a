import { type ChildProcess, spawn } from 'node:child_process';
import { execa } from 'execa';
import { createKeptShellsRow } from '../rows/kept-shells.ts';
import { MarkedShell } from '../rows/marked-shell.ts';
import { eachInTurn, expectOutput, type Script } from '../rows/row.ts';
import { type Peer, toPeer } from './peer.ts';

/** Creates the peer of one bash per session behind pipes, on this machine. */
export async function createBashPipePeer(): Promise<Peer> {
  const shells: ChildProcess[] = [];
  const open = async (): Promise<MarkedShell> => {
    const child = spawn('bash', ['--norc', '--noprofile'], { stdio: ['pipe', 'pipe', 'ignore'] });
    shells.push(child);
    const shell = new MarkedShell((text) => void child.stdin.write(text));
    child.stdout.on('data', (chunk: Buffer) => shell.receive(chunk.toString()));
    return shell;
  };
  const close = async (): Promise<void> => {
    for (const shell of shells) shell.kill('SIGKILL');
  };
  return toPeer('bash-pipe', await createKeptShellsRow('bash-pipe', open, close));
}

/** Creates the peer of execa: a fresh bash on this machine for each command. */
export function createExecaPeer(): Peer {
  const one = async (script: Script): Promise<void> => {
    const { stdout } = await execa('bash', ['-c', script], { stripFinalNewline: false });
    expectOutput(stdout, script);
  };
  const many = (sessions: number, perSession: number) => eachInTurn(sessions, perSession, () => one('echo hi'));
  return toPeer('execa', { one, many, workerPid: undefined, close: async () => {} });
}
