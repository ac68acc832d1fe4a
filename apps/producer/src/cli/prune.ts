import { createInterface } from 'node:readline/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import { findDocker, findLeftovers, type Leftover, removeLeftover } from '@shellfleet/setup';
import { type Command, Option } from 'commander';
import { findOwnFleet } from '../fleet-process/own-fleet.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

interface Flags {
  fleet?: string;
  images?: boolean;
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
      new Option('--images', 'session images too that no container and no `up` uses').env('SHELLFLEET_PRUNE_IMAGES'),
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
  const found = await findLeftovers(engine.endpoint, {
    liveFleetIds: own.fleetId === undefined ? [] : [own.fleetId],
    namespace: named.namespace || undefined,
    images: flags.images === true,
  });
  const goes = (one: Leftover) => one.owner === undefined || (one.fleetId !== undefined && one.fleetId === flags.fleet);
  const removed = found.filter(goes);
  if (flags.json) for (const one of found) await terminal.json({ ...one, removed: goes(one) });
  else if (found.length > 0)
    await terminal.table([
      ['KIND', 'NAME', 'NAMESPACE', 'FLEET', 'WHAT HAPPENS'],
      ...found.map((one) => [one.kind, one.name, one.namespace, one.fleetId ?? '-', describe(one, goes(one))]),
    ]);
  if (removed.length === 0) return terminal.say('Nothing here is nobody’s.');
  if (flags.dryRun) return terminal.say(`${count(removed.length)} would be removed.`);
  if (!flags.yes && !(await isConfirmed(removed.length))) return terminal.say('Nothing was removed.');
  for (const one of removed) await removeLeftover(engine.endpoint, one);
  terminal.say(`${count(removed.length)} ${removed.length === 1 ? 'was' : 'were'} removed.`);
}

const count = (number: number) => `${number} of them`;

function describe({ owner }: Leftover, goes: boolean): string {
  if (!goes) return `stays: ${owner}`;
  return owner === undefined ? 'is removed: nobody owns it' : `is removed as --fleet says, although ${owner}`;
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
