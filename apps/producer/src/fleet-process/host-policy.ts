import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { tryJson } from '@shellfleet/protocol';
import type { Finding } from '@shellfleet/setup';
import { z } from 'zod';
import { workerProgram } from './worker-program.ts';

const wordSchema = z.object({ offered: z.boolean(), detail: z.string(), sharesUid: z.boolean().default(false) });

const name = 'host policy';
const SET_UP =
  'useradd --system shellfleet-sessions, SHELLFLEET_HOST_USER=shellfleet-sessions, and a worker that runs as root';
const GIVES_AWAY =
  ". SHELLFLEET_HOST_SHARED_UID=1: its sessions can read and change whatever the worker's user can, keys of other programs and start-up files of its shells included";

/** Whether a worker on this machine could offer the host policy, tested by the worker's program. `missing` only if the policy is listed. */
export async function examineHostPolicy(env: NodeJS.ProcessEnv): Promise<Finding> {
  const isListed = (env.SHELLFLEET_POLICIES ?? '').split(',').some((policy) => policy.trim() === 'host');
  const args = workerProgram('sandbox/examine-host-policy');
  const answer = await promisify(execFile)(process.execPath, args, { env, timeout: 30_000 }).catch(() => undefined);
  const word = wordSchema.safeParse(tryJson(answer?.stdout ?? '')).data;
  if (word === undefined) return { name, state: 'missing', detail: 'the worker could not be asked', fix: 'npm ci' };
  if (!word.offered)
    return { name, state: isListed ? 'missing' : 'absent', detail: word.detail.replace(/\.$/, ''), fix: SET_UP };
  const listed = isListed ? 'offered' : 'can be offered (SHELLFLEET_POLICIES=docker,host)';
  return { name, state: 'present', detail: `${listed}: ${word.detail}${word.sharesUid ? GIVES_AWAY : ''}` };
}
