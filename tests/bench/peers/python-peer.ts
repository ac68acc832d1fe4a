import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import type { Peer, PYTHON_PEERS } from './peer.ts';

type PythonPeer = (typeof PYTHON_PEERS)[number];

const run = promisify(execFile);
const requirements: Record<PythonPeer, string> = { langchain: 'langchain==1.4.2', 'swe-rex': 'swe-rex==1.4.0' };

const environmentOf = (name: PythonPeer) => join(checkoutRoot, '.cache/bench-peers', name);

/** Installs a package of Python for the bench alone, in a virtual environment of its own. */
export async function installPythonPeer(name: PythonPeer): Promise<void> {
  const environment = environmentOf(name);
  await run('python3', ['-m', 'venv', environment]);
  const pip = ['--quiet', '--retries', '1', '--timeout', '20', '--disable-pip-version-check'];
  await run(join(environment, 'bin/pip'), ['install', ...pip, requirements[name]], { timeout: 180_000 });
}

/** Starts the process of a peer of Python. Throws when its package is not installed. */
export async function startPythonPeer(name: PythonPeer): Promise<Peer> {
  const python = join(environmentOf(name), 'bin/python');
  await access(python).catch(() => {
    throw new Error('it is not installed; `npm run bench -- --peers` installs it, with pip');
  });
  const program = join(import.meta.dirname, 'peers.py');
  const child = spawn(python, [program, name], { stdio: ['pipe', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = `${errors}${chunk}`.slice(-2_000);
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ask = async (request: object): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`its process ended: ${errors.trim().split('\n').at(-1)}`);
    return JSON.parse(value);
  };
  child.stdin.on('error', () => {}); // the end of the process is reported by the reader of its output
  await ask({ idle: 'true', samples: 1 });
  return {
    name,
    idle: (script, samples) => ask({ idle: script, samples }) as Promise<number[]>,
    load: (sessions, perSession) => ask({ sessions, perSession }) as Promise<number>,
    async close() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
