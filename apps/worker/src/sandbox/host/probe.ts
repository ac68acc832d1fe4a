import { randomBytes } from 'node:crypto';
import type { Enclosure } from './enclosure.ts';
import { SYSTEM_PATH } from './find-program.ts';
import { type Launch, launch } from './launch.ts';
import type { Records } from './records.ts';
import type { TemporaryWorkspaces } from './temporary-workspaces.ts';
import { unavailable } from './unavailable.ts';

// Tests whether this host can enforce the policy: runs one shell under it that checks its environment and ends.

const PROBLEMS: Record<number, string> = {
  11: 'it did not get a pid namespace of its own',
  12: 'its user cannot write to the workspace that was made for it',
  13: 'its user may write to the Docker socket, which makes it root on this host: take it out of that group',
  14: 'its user can open the state directory of this worker, which has its keys',
};

const SCRIPT = `[ $$ -le 2 ] || exit 11
touch /workspace/probe || exit 12
hidden=$1; shift
while [ $hidden -gt 0 ]; do [ ! -x "$1" ] || exit 14; shift; hidden=$((hidden - 1)); done
for socket in "$@"; do [ ! -w "$socket" ] || exit 13; done`;

/** How a probe is launched. `enclosure` encloses the shell, and `enclosureProgram` is its command line. */
export type ProbeLaunch = Omit<Launch, 'record' | 'workspace' | 'program' | 'env' | 'keeperDirectory' | 'policy'> & {
  enclosure: Enclosure;
  enclosureProgram: string[];
};

/**
 * Throws SANDBOX_UNAVAILABLE with the reason if the host cannot enforce the policy. `sockets` give their user the
 * rights of root; `keys` are directories that must be out of reach, by all their paths.
 */
export async function probe(
  { enclosure, enclosureProgram, ...request }: ProbeLaunch,
  {
    records,
    workspaces,
    sockets,
    keys,
  }: { records: Records; workspaces: TemporaryWorkspaces; sockets: string[]; keys: string[] },
): Promise<void> {
  const name = `probe-${randomBytes(6).toString('hex')}`;
  const record = records.at(name);
  try {
    await record.write({
      session: { namespace: 'probe', tenant: 'probe', session: 'probe' },
      sandboxId: name.slice(-12),
      keeperProtocol: 0,
      createdAt: Date.now(),
    });
    const workspace = await workspaces.create(name);
    const script = `${SCRIPT}\n${enclosure.trial?.script ?? ''}`;
    const program = [...enclosureProgram, '/bin/sh', '-c', script, 'sh', String(keys.length), ...keys, ...sockets];
    const { policy } = enclosure;
    const { ended } = await launch({
      ...request,
      policy,
      record,
      workspace,
      program,
      env: { PATH: SYSTEM_PATH, HOME: '/workspace', ...enclosure.env },
      showsErrors: true,
    });
    const { code, said } = await ended;
    if (code === 0) return;
    const problem = { ...PROBLEMS, ...enclosure.trial?.problems }[code ?? -1];
    throw unavailable(policy, problem ?? `a shell ended with ${code}${said === '' ? '' : ` (${said})`}`);
  } finally {
    await workspaces.remove(name);
    await record.remove();
  }
}
