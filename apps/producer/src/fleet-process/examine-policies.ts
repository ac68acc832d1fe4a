import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { tryJson } from '@shellfleet/protocol';
import type { MachinePart } from '@shellfleet/setup';
import { z } from 'zod';
import { workerProgram } from './worker-program.ts';

const wordSchema = z.object({ offered: z.boolean(), detail: z.string(), sharesUid: z.boolean().default(false) });

const POLICIES = ['host', 'bubblewrap', 'codex', 'kubernetes'] as const;
type Policy = (typeof POLICIES)[number];

const USER =
  'useradd --system shellfleet-sessions, SHELLFLEET_HOST_USER=shellfleet-sessions, and a worker that runs as root';
const FIXES: Record<Policy, string> = {
  host: USER,
  bubblewrap: `apt-get install bubblewrap, ${USER}`,
  codex: `npm install --global @openai/codex, ${USER}`,
  kubernetes: 'the section kubernetes of SHELLFLEET_CONFIG, and the role of the chart for its service account',
};
const GIVES_AWAY: Record<Policy, string> = {
  host: ". SHELLFLEET_HOST_SHARED_UID=1: its sessions can read and change whatever the worker's user can, keys of other programs and start-up files of its shells included",
  bubblewrap: '',
  codex: ". SHELLFLEET_HOST_SHARED_UID=1: its sessions can read whatever the worker's user can",
  kubernetes: '',
};

/** Tests with the worker's program whether this machine can offer the policies that need no Docker engine. */
export function examinePolicies(env: NodeJS.ProcessEnv): Promise<MachinePart[]> {
  // A machine outside a cluster lacks nothing.
  const examined = POLICIES.filter((policy) => policy !== 'kubernetes' || isListed(policy, env));
  return Promise.all(examined.map((policy) => examinePolicy(policy, env)));
}

const isListed = (policy: Policy, { SHELLFLEET_POLICIES = '' }: NodeJS.ProcessEnv): boolean =>
  SHELLFLEET_POLICIES.split(',').some((listed) => listed.trim() === policy);

/** Tests one policy. It is `missing` only if it is listed. */
async function examinePolicy(policy: Policy, env: NodeJS.ProcessEnv): Promise<MachinePart> {
  const name = `${policy} policy`;
  const args = [...workerProgram('sandbox/examine-policy'), policy];
  const answer = await promisify(execFile)(process.execPath, args, { env, timeout: 30_000 }).catch(() => undefined);
  const word = wordSchema.safeParse(tryJson(answer?.stdout ?? '')).data;
  if (word === undefined) return { name, state: 'missing', detail: 'the worker could not be asked', fix: 'npm ci' };
  if (!word.offered)
    return {
      name,
      state: isListed(policy, env) ? 'missing' : 'absent',
      detail: word.detail.replace(/\.$/, ''),
      fix: FIXES[policy],
    };
  const how = isListed(policy, env) ? 'offered' : `can be offered (SHELLFLEET_POLICIES=docker,${policy})`;
  return { name, state: 'present', detail: `${how}: ${word.detail}${word.sharesUid ? GIVES_AWAY[policy] : ''}` };
}
