import { setTimeout as delay } from 'node:timers/promises';
import type { Command, Session } from '@shellfleet/client';
import { type Installation, openClusterStage } from '../stage/cluster-stage.ts';

/** Most properties that a cluster may lack one after another, since a refusal may hide the next. */
const MOST_ROUNDS = 4;
const FIRST_WITHIN_MS = 180_000;
const LOOKS_EVERY_MS = 2_000;

/**
 * Opens sessions until none is refused, and accepts after each refusal what this cluster does not enforce. Returns
 * that, by the names of `kubernetes.unenforced`, with the words of the refusal. Throws for any other failure.
 */
export async function findUnenforced(
  installation: Installation,
  accept: (names: string[]) => Promise<void>,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const refusal = await openSession(installation, round);
    if (refusal === undefined) return found;
    const names = readNames(refusal);
    if (names.length === 0) throw new Error(`A first session does not run: ${refusal}`);
    for (const name of names) found[name] = refusal;
    await accept(Object.keys(found));
  }
  throw new Error('A first session is refused for one thing after another.');
}

/** Returns the names that a refusal offers to accept. */
function readNames(refusal: string): string[] {
  return [...new Set([...refusal.matchAll(/unenforced: \['(\w+)'\]/g)].map(([, name = '']) => name))];
}

async function openSession(installation: Installation, round: number): Promise<string | undefined> {
  console.log('Opening a first session');
  await using stage = await openClusterStage(installation);
  const session = await stage.fleet.session(`first-${round}`, stage.spec);
  const { outcome, error } = await untilEnd(session, await session.submit('true'));
  await session.close();
  return outcome === 'success' ? undefined : (error?.message ?? outcome);
}

/** Waits for the result of a session's first command, and prints what the session waits for. Throws after 3 minutes. */
async function untilEnd(session: Session, command: Command) {
  const result = command.result();
  let why = '';
  for (const until = Date.now() + FIRST_WITHIN_MS; Date.now() < until; ) {
    const ended = await Promise.race([result, delay(LOOKS_EVERY_MS, undefined)]);
    if (ended !== undefined) return ended;
    const { state, waitsFor, noHostReason } = await session.info();
    const now = waitsFor ?? noHostReason ?? `its state is ${state}`;
    if (now !== why) console.log(`  it waits: ${now}`);
    why = now;
  }
  throw new Error(`A first session has not run within ${FIRST_WITHIN_MS / 1_000} s: ${why}`);
}
