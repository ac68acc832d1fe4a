import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Session } from '@shellfleet/client';

const program = new URL('../fixtures/escape-probes.py', import.meta.url);

/** What a session must not reach: places of this machine that are open for it to find. */
export interface Outside extends AsyncDisposable {
  /** Kept open by this process. */
  description: string;
}

/** `sockets`: paths of the engine's sockets. `processes`, `secrets`: words in the command lines and environments of processes outside. */
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

/** What every row of the list reached, in words; empty where it held. The session needs python3. */
export async function tryToEscape(session: Session, outside: Outside): Promise<Record<string, string>> {
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

/** The names of all rows, from the program itself. */
export async function escapeRows(): Promise<string[]> {
  const text = await readFile(program, 'utf8');
  const named = [...text.matchAll(/^@row\("([^"]+)"\)$/gm)].map(([, name = '']) => name);
  const calls = [...(/^for name, arguments in \{([\s\S]+?)\n\}/m.exec(text)?.[1]?.matchAll(/"(\w+)": \(/g) ?? [])];
  return [...named, ...calls.map(([, name = '']) => name)].sort();
}
