import { ensureFullSessionImage, hasFullSessionImage, type Machine } from '@shellfleet/setup';

const FULL = 'full';

interface Building {
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
}

/**
 * Makes the image `full` in the background, unless it exists or another default is set. Returns a function that
 * interrupts the making. A failure is reported and does not end the fleet.
 */
export function makeFullImage(machine: Machine, { env, report }: Building): () => Promise<void> {
  if ((env.SHELLFLEET_DEFAULT_IMAGE || FULL) !== FULL) return async () => {};
  const interrupted = new AbortController();
  const made = make(machine, { env, report }, interrupted.signal).catch((error: unknown) => {
    if (interrupted.signal.aborted) return;
    report(`The session image full could not be made: ${error instanceof Error ? error.message : String(error)}
Sessions that name no image get slim. The next start tries again.`);
  });
  return () => {
    interrupted.abort(new Error('The fleet ends.'));
    return made;
  };
}

async function make(machine: Machine, { env, report }: Building, signal: AbortSignal): Promise<void> {
  const isThere = await hasFullSessionImage(machine);
  if (!isThere) {
    report(
      'The session image full (pip, npm, curl, gcc, make, jq, and more) is made behind the fleet. Until it is there, sessions that name no image get slim.',
    );
  }
  await ensureFullSessionImage(machine, env, report, signal);
  if (!isThere) report('The session image full is there: sessions that name no image get it from now on.');
}
