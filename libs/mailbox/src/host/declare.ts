import { encodeWireResult, newResult } from '@shellfleet/protocol';
import { asArray, retentionOf } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import type { Entry } from './entry.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/declare');

/** State of a session in its owner's memory. */
export interface Declaration {
  generation: string;
  /** sealed */
  spec: string;
  placementClass: string;
  /** plain, as JSON */
  placement: string;
  createdAt: number;
  driven: boolean;
  epoch: number;
  epochBase: number;
  /** id of the sandbox of its ready shell */
  sandbox: string | undefined;
  /** running entry, with the output that Redis has confirmed */
  running: { entry: Entry; stored: StoredOutput } | undefined;
}

export interface StoredOutput {
  stdout: number;
  stderr: number;
  seq: number;
}

const LOST = encodeWireResult(
  newResult({ outcome: 'lost' }, { shell: { state: 'lost', reason: 'Redis lost the end of this command', epoch: 0 } }),
);

/** Restores a session in a Redis with other data. `fenced`: another host has a higher fence. Safe to repeat. */
export async function declare(owner: Owner, declared: Declaration): Promise<{ type: 'declared' } | Fenced> {
  const { redis, keys, fence, host } = owner;
  const { generation, spec, placementClass, placement, createdAt, driven, epoch, epochBase, sandbox, running } =
    declared;
  const retention = retentionOf(redis, keys.namespace);
  const shell = sandbox === undefined ? '' : `${host} ${sandbox}`;
  const session = [fence, host, generation, shell, epoch, epochBase, LOST, retention];
  const args = [...session, spec, placementClass, placement, createdAt, ...toArguments(running), driven ? '1' : ''];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  return reply[0] === -1 ? FENCED : { type: 'declared' };
}

function toArguments(running: Declaration['running']): (string | number)[] {
  if (running === undefined) return ['', '', '', 0, 0, '', '', 0, 0, 0];
  const { entry, stored } = running;
  return [
    ...[entry.id, entry.kind, entry.inbox, entry.acceptedAt, entry.startedAt, entry.retry, entry.payload],
    ...[stored.stdout, stored.stderr, stored.seq],
  ];
}
