import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';

const program = new URL('../fixtures/escape-probes.py', import.meta.url);

/** Places of this machine that a session must not reach, although they are open. */
export interface Outside extends AsyncDisposable {
  /** JSON text about the places, from which the probes learn their addresses. */
  description: string;
}

/**
 * Opens places outside of the sandbox. `sockets` are paths of the engine's sockets. `processes` and `secrets` are words
 * in the command lines and environments of processes outside of the sandbox.
 */
export async function openOutside(known: {
  sockets?: string[];
  processes?: string[];
  secrets?: string[];
}): Promise<Outside> {
  const abstract = `escape-${process.pid}-${Date.now()}`;
  const byName = createServer((socket) => socket.end()).listen(`\0${abstract}`);
  const byPort = createServer((socket) => socket.end()).listen(0, '0.0.0.0');
  await Promise.all([once(byName, 'listening'), once(byPort, 'listening')]);
  const { port } = byPort.address() as AddressInfo;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  const names = ['pid', 'ipc', 'uts', 'mnt', 'net'];
  const namespaces = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readlink(`/proc/self/ns/${name}`)])),
  );
  return {
    description: JSON.stringify({
      ...known,
      abstract,
      tcp: addresses.filter((address) => !address.includes(':')).map((address) => [address, port]),
      namespaces,
    }),
    async [Symbol.asyncDispose]() {
      byName.close();
      byPort.close();
    },
  };
}

interface Runs {
  run(script: string, options: { stdin: string }): Promise<{ stdout: string; stderr: string; outcome: string }>;
}

/**
 * Tries every way out of the sandbox. Returns by row what was reached, or an empty text if the sandbox held. The
 * session needs python3.
 */
export async function tryToEscape(session: Runs, outside: Outside): Promise<Record<string, string>> {
  const text = await readFile(program, 'utf8');
  const stdin = text.replace(
    /^OUTSIDE = \{\}.*$/m,
    () => `OUTSIDE = json.loads(${JSON.stringify(outside.description)})`,
  );
  const { stdout, stderr, outcome } = await session.run('python3 - inside', { stdin });
  if (outcome !== 'success') throw new Error(`the probes ended with ${outcome}: ${stderr}`);
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
}

/** Reads docs/sandbox-limits.md. Returns for each way out whether the policy promises that it fails. */
export async function promisesOf(policy: string): Promise<Record<string, boolean>> {
  const page = await readFile(new URL('../../docs/sandbox-limits.md', import.meta.url), 'utf8');
  const rows = (page.split('## Ways out')[1] ?? '').split('\n').filter((line) => line.startsWith('| '));
  const cells = rows.map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  const column = cells[0]?.indexOf(policy) ?? -1;
  return Object.fromEntries(cells.slice(1).map((line) => [line[1], line[column]?.startsWith('fails') === true]));
}

/** Returns the names of all ways out, which it reads from the program of the probes. */
export async function escapeRows(): Promise<string[]> {
  const text = await readFile(program, 'utf8');
  const named = [...text.matchAll(/^@row\("([^"]+)"\)$/gm)].map(([, name = '']) => name);
  const calls = [...(/^for name, arguments in \{([\s\S]+?)\n\}/m.exec(text)?.[1]?.matchAll(/"(\w+)": \(/g) ?? [])];
  return [...named, ...calls.map(([, name = '']) => name)].sort();
}
