import { resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import { findDocker, findLeftovers, type Leftover, removeLeftover, stateDirectory } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { forgetImageOwners } from '../fleet-process/image-owners.ts';
import { readImageUses } from '../fleet-process/image-uses.ts';
import { findOwnFleet } from '../fleet-process/own-fleet.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

interface Flags {
  fleet?: string;
  images?: boolean;
  kept?: boolean;
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
}

export function registerPrune(program: Command, context: Context): void {
  program
    .command('prune')
    .description('remove what fleets have left on the engine of this machine, and nobody owns any more')
    .addOption(new Option('--fleet <id>', 'what this fleet owns too').env('SHELLFLEET_PRUNE_FLEET'))
    .addOption(
      new Option('--images', 'names of session images too that no container and no `up` uses').env(
        'SHELLFLEET_PRUNE_IMAGES',
      ),
    )
    .addOption(
      new Option('--kept', 'containers too that the fleet keeps for a post-mortem; with --fleet, of that one').env(
        'SHELLFLEET_PRUNE_KEPT',
      ),
    )
    .addOption(new Option('--dry-run', 'list only').env('SHELLFLEET_PRUNE_DRY_RUN'))
    .addOption(new Option('-y, --yes', 'do not ask').env('SHELLFLEET_PRUNE_YES'))
    .addOption(jsonFlag())
    .action((flags: Flags) => prune(context, program.opts(), flags));
}

type Fleet = { redisUrl?: string; namespace?: string };

async function prune({ config, terminal }: Context, named: Fleet, flags: Flags): Promise<void> {
  const engine = await findDocker(config.env);
  if (engine === undefined)
    throw new ShellfleetError(
      'DOCKER_UNAVAILABLE',
      'No Docker engine answers on this machine. Name it in DOCKER_HOST, or start it.',
    );
  const own = await findOwnFleet(named, config.env);
  const isAsked = isAskedFor(flags, own.fleetId, resolve(stateDirectory(config.env)));
  const goes = (one: Leftover) => one.owner === undefined || isAsked(one);
  const find = async () =>
    findLeftovers(engine.endpoint, {
      liveFleetIds: own.fleetId === undefined ? [] : [own.fleetId],
      namespace: named.namespace || undefined,
      images: flags.images === true ? await readImageUses(config.env) : undefined,
    });
  const found = await find();
  const going = found.filter(goes);
  if (flags.json) for (const one of found) await terminal.json({ ...one, mounted: undefined, removed: goes(one) });
  else if (found.length > 0)
    await terminal.table([
      ['KIND', 'NAME', 'NAMESPACE', 'FLEET', 'WHAT HAPPENS'],
      ...found.map((one) => [one.kind, one.name, one.namespace, one.fleetId ?? '', describe(one, goes(one))]),
    ]);
  if (going.length === 0) return terminal.say('There is nothing to remove.');
  if (flags.dryRun) return terminal.say(`${count(going.length)} would be removed.`);
  if (!flags.yes && !(await isConfirmed(going.length))) return terminal.say('Nothing was removed.');
  // An item may have come into use while the question was shown.
  const now = flags.yes ? going : (await find()).filter(goes);
  const isThere = (one: Leftover) => now.some(({ id, name }) => id === one.id && name === one.name);
  let removed = 0;
  for (const one of going) if (isThere(one) && (await removeLeftover(engine.endpoint, one))) removed += 1;
  terminal.say(`${count(removed)} ${removed === 1 ? 'was' : 'were'} removed.`);
  if (flags.images)
    await forgetImageOwners(
      (await find()).map(({ name }) => name),
      config.env,
    );
}

const count = (number: number) => `${number} of them`;

/** Returns true for owned items that the flags ask to remove. `--kept` limits `--fleet` to kept containers. */
function isAskedFor({ fleet, kept }: Flags, ownFleetId: string | undefined, ownDirectory: string) {
  const isOfFleet = ({ fleetId, mounted }: Leftover) =>
    fleet === undefined
      ? (fleetId !== undefined && fleetId === ownFleetId) || mounted?.startsWith(`${ownDirectory}/`) === true
      : fleetId === fleet;
  return (one: Leftover) => (kept === true ? one.isKept : fleet !== undefined) && isOfFleet(one);
}

function describe({ owner, isKept, fleetId }: Leftover, goes: boolean): string {
  if (goes)
    return owner === undefined ? 'is removed: nobody owns it' : `is removed as the flags say, although ${owner}`;
  if (isKept && fleetId !== undefined)
    return `stays: it is kept for a post-mortem; --kept --fleet ${fleetId} removes it`;
  return `stays: ${owner}`;
}

async function isConfirmed(number: number): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new ShellfleetError(
      'COMMAND_INVALID',
      'Nothing was removed: without a terminal to ask at, prune needs --yes.',
    );
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`Remove ${count(number)}? [y/N] `).finally(() => asking.close());
  return /^y(es)?$/i.test(answer.trim());
}
