import { failWaitingEntries, notify, type StoredSession } from '@shellfleet/mailbox';
import { newSessionJob, type Placement, parseClass, placementClass, readBeats } from '@shellfleet/placement';
import { type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import { type SeenSession, sessionFields, type UpkeepDeps } from './upkeep-deps.ts';

/** Fails the waiting entries when no live host has had the seal key for `keyPatienceMs` (UPKEEP-6). */
export async function endIfKeyUnknown(
  keys: SessionKeys,
  state: StoredSession,
  placement: Placement,
  seen: SeenSession,
  deps: UpkeepDeps,
): Promise<boolean> {
  const { redis, fleet, jobs, logger } = deps;
  const keyId = parseClass(placementClass(placement))?.keyId ?? '';
  const isKnown = keyId === '' || deps.sealKeys.includes(keyId) || (await isHad(keyId, deps));
  if (isKnown) {
    delete seen.keyUnknownSince;
    return false;
  }
  const now = performance.now();
  seen.keyUnknownSince ??= now;
  if (state.host !== '' || state.running !== '' || now - seen.keyUnknownSince < deps.keyPatienceMs) return false;
  const { tenant, session } = keys;
  const ended = await failWaitingEntries(redis, keys, state.generation, keyUnknown(session, keyId));
  await jobs.drop(newSessionJob(keys, state.generation, placement));
  logger.error({ ...sessionFields(keys), keyId, endedCommands: ended.length }, 'session.key-unknown');
  for (const { inbox, entryId, event } of ended) {
    await notify(redis, fleet.namespace, inbox, { tenant, session, entryId, event, result: '' });
  }
  return true;
}

async function isHad(keyId: string, { redis, fleet }: UpkeepDeps): Promise<boolean> {
  const beats = await readBeats(redis, fleet);
  return beats.some(({ sealKeys }) => sealKeys.includes(keyId));
}

function keyUnknown(session: string, keyId: string): ShellfleetError {
  return new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `Session ${session} was sealed with the key ${keyId}, and no live host has it, so nothing was run. Close the session and use the fleet's key, or give this one to the hosts as well (SHELLFLEET_SEAL_KEY=new,old).`,
    { session, kind: 'spec', entry: '' },
  );
}
