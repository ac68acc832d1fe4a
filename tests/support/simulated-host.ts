import {
  adopt,
  announce,
  append,
  type Entry,
  finish,
  type Owner,
  release,
  rerun,
  type Taken,
  take,
} from '@shellfleet/mailbox';
import type { Outcome, StoredChunk } from '@shellfleet/protocol';
import { resultOf } from './mailbox-session.ts';
import type { Random } from './random.ts';
import { planOutput } from './simulated-output.ts';

// A host without Docker: the calls of a worker to a mailbox, and a keeper that counts the entries that it ran.
//
// SIMULATED-KEEPER-1. A keeper outlives its worker, obeys its newest owner, refuses an id that it began before, and
//     keeps all output until it is stored.
// SIMULATED-KEEPER-2. An entry is followed only on the keeper that began it under the fence in its record, and begun
//     only on a keeper that existed when the entry was started.

interface Keeper {
  /** the fence under which it was created */
  bornUnder: number;
  /** the fence of the newest owner that has connected */
  fence: number;
  /** entry id → the fence in its record at the time when this keeper began it */
  begun: Map<string, number>;
}

export interface World {
  random: Random;
  /** keepers by host id; the keeper of a missing host was lost with the host, or removed */
  keepers: Map<string, Keeper>;
  /** Number of times that keepers have begun each entry, by entry id. */
  ran: Map<string, number>;
  /** Replies of scripts that an invariant rules out. */
  surprises: string[];
}

/**
 * Runs a worker that has just acquired the session. Ends when the worker is fenced or has nothing to do. When the
 * worker dies, its calls throw.
 */
export async function hostRun(owner: Owner, world: World): Promise<void> {
  const adopted = await adopt(owner);
  const before = world.keepers.get(owner.host);
  if (adopted.type !== 'adopted') return removeKeeper(owner, world);
  const keeper = before ?? { bornUnder: owner.fence, fence: owner.fence, begun: new Map() };
  if (keeper.fence > owner.fence) return;
  keeper.fence = owner.fence;
  world.keepers.set(owner.host, keeper);
  const epoch = adopted.epoch + (before === undefined ? 1 : 0);
  const opened = { type: 'session.opened', data: { hostId: owner.host, epoch } } as const;
  await announce(owner, { epoch, epochBase: epoch - 1, status: 'ready' }, opened);
  let next: Taken | { type: 'fenced' } =
    adopted.running === undefined ? await take(owner) : { type: 'running', entry: adopted.running };
  // Ends when the session is given up, another host owns it, or no entry waits.
  for (;;) {
    if (next.type === 'fenced') return removeKeeper(owner, world);
    if (next.type === 'empty') {
      if (!next.closing && world.random.chance(0.5)) return;
      const released = await release(owner, 'queued');
      if (released.type !== 'busy') return removeKeeper(owner, world);
      next = await take(owner);
      continue;
    }
    next = await runEntry(owner, world, keeper, next);
  }
}

async function runEntry(
  owner: Owner,
  world: World,
  keeper: Keeper,
  taken: Exclude<Taken, { type: 'empty' }>,
): Promise<Taken | { type: 'fenced' }> {
  const { entry } = taken;
  const mayHaveBegunElsewhere = entry.host !== owner.host || keeper.bornUnder > entry.fence;
  if (taken.type === 'overdue') return finishEntry(owner, world, entry, 'timeout', []);
  if (keeper.begun.get(entry.id) === entry.fence) return follow(owner, world, entry);
  if (mayHaveBegunElsewhere) {
    const again = await rerun(owner, entry);
    if (again.type === 'fenced') return again;
    if (again.type === 'refused') return finishEntry(owner, world, entry, 'lost', []);
    if (!begin(owner, world, keeper, entry.id, owner.fence)) return { type: 'fenced' };
    return follow(owner, world, { ...entry, offsets: { stdout: 0, stderr: 0 }, seq: 0 });
  }
  return begin(owner, world, keeper, entry.id, entry.fence) ? follow(owner, world, entry) : { type: 'fenced' };
}

/** Begins an entry. Returns false if the keeper has a newer owner, or has begun this start of the entry before. */
function begin(owner: Owner, world: World, keeper: Keeper, entryId: string, startedUnder: number): boolean {
  if (keeper.fence > owner.fence || keeper.begun.get(entryId) === startedUnder) return false;
  keeper.begun.set(entryId, startedUnder);
  world.ran.set(entryId, (world.ran.get(entryId) ?? 0) + 1);
  return true;
}

/** A fenced host ends its shell, unless a newer run of its worker has it now. */
function removeKeeper(owner: Owner, world: World): void {
  if ((world.keepers.get(owner.host)?.fence ?? 0) <= owner.fence) world.keepers.delete(owner.host);
}

/** Stores the rest of an entry's output, and finishes the entry. */
async function follow(owner: Owner, world: World, entry: Entry): Promise<Taken | { type: 'fenced' }> {
  const pieces = planOutput(entry.id, entry.offsets, entry.seq);
  const rest = world.random.below(pieces.length + 1);
  for (let index = 0; index < rest; ) {
    const some = pieces.slice(index, index + 1 + world.random.below(3));
    index += some.length;
    const answer = await append(owner, entry.id, some);
    if (answer.type === 'fenced') return answer;
    if (answer.type === 'not-running') world.surprises.push(`${entry.id} is not running, said its owner's append`);
    if (answer.type === 'misplaced' && some.some((piece) => piece.rawTo > answer.offsets[piece.stream]))
      world.surprises.push(`${entry.id}: output misplaced, ${JSON.stringify(answer.offsets)}`);
    if (index >= rest) return finishEntry(owner, world, entry, 'success', pieces.slice(index));
  }
  return finishEntry(owner, world, entry, 'success', pieces.slice(rest));
}

async function finishEntry(
  owner: Owner,
  world: World,
  entry: Entry,
  outcome: Outcome,
  output: StoredChunk[],
  cancelReason?: string,
): Promise<Taken | { type: 'fenced' }> {
  const takeNext = world.random.chance(0.7);
  const end = {
    result: resultOf(outcome),
    epoch: 1,
    takeNext,
    output,
    ...(cancelReason !== undefined && { cancelReason }),
  };
  const finished = await finish(owner, entry.id, end);
  switch (finished.type) {
    case 'fenced':
      return finished;
    case 'cancelled':
      return finishEntry(owner, world, entry, 'cancellation', output, finished.reason);
    case 'misplaced':
      world.surprises.push(`${entry.id}: output of its finish misplaced, ${JSON.stringify(finished.offsets)}`);
      return { type: 'fenced' };
    case 'not-running':
      world.surprises.push(`${entry.id} is not running, said its owner's finish`);
      return take(owner);
    case 'finished':
      return takeNext ? finished.next : take(owner);
  }
}
