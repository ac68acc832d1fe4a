import type { Fleet } from '@shellfleet/client';
import { type HostInfo, ShellfleetError } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { describePull, describeSize } from './units.ts';

interface Flags {
  host?: string;
  json?: boolean;
}

export function registerImages(program: Command, context: Context): void {
  const images = program.command('images').description('images of the hosts');
  const hostFlag = () =>
    new Option('--host <id>', 'only this host; default: all hosts with containers').env('SHELLFLEET_IMAGES_HOST');
  images
    .command('ls')
    .description('list the images that sessions may name, and which of them a host may remove')
    .addOption(hostFlag())
    .addOption(jsonFlag())
    .action((flags: Flags) => list(context, flags));
  images
    .command('pull')
    .description('let hosts pull images, and wait for them')
    .argument('<image...>')
    .addOption(hostFlag())
    .addOption(jsonFlag())
    .action((names: string[], flags: Flags) => pull(context, names, flags));
  images
    .command('prune')
    .description('remove the images that hosts have pulled, and that are neither in use nor pinned')
    .addOption(hostFlag())
    .addOption(new Option('--dry-run', 'list only').env('SHELLFLEET_IMAGES_DRY_RUN'))
    .addOption(jsonFlag())
    .action((flags: Flags & { dryRun?: boolean }) => prune(context, flags));
}

async function list(context: Context, flags: Flags): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const rows: string[][] = [];
    for (const host of await findHosts(fleet, flags)) {
      for (const image of await fleet.hostImages(host)) {
        if (flags.json) await terminal.json({ host, ...image });
        const why = [image.inUse && 'in use', image.pinned && 'pinned', !image.isPulled && 'not pulled by the host'];
        const stays = why.filter((reason) => reason !== false).join(', ');
        const digest = image.digest.replace(/^sha256:/, '').slice(0, 12);
        rows.push([host, image.image, digest, describeSize(image.bytes), image.usedAt ?? '-', stays || '-']);
      }
    }
    if (!flags.json) await terminal.table([['HOST', 'IMAGE', 'DIGEST', 'SIZE', 'LAST USED', 'STAYS BECAUSE'], ...rows]);
  });
}

async function pull(context: Context, names: readonly string[], flags: Flags): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const pairs = (await findHosts(fleet, flags)).flatMap((host) => names.map((image) => ({ host, image })));
    const pulled = await Promise.allSettled(
      pairs.map(async ({ host, image }) => {
        const onProgress: Parameters<Fleet['pullImage']>[2] = flags.json
          ? {}
          : { onProgress: (running) => terminal.say(`${host}: ${describePull(running ?? { image })}`) };
        const digest = await fleet.pullImage(host, image, onProgress);
        if (flags.json) await terminal.json({ host, image, digest });
        else terminal.say(`${host} has ${image} (${digest}).`);
      }),
    );
    for (const { reason } of pulled.filter((one) => one.status === 'rejected')) throw reason;
  });
}

async function prune(context: Context, flags: Flags & { dryRun?: boolean }): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    for (const host of await findHosts(fleet, flags)) {
      const removed = await fleet.pruneImages(host, { dryRun: flags.dryRun });
      const bytes = removed.reduce((sum, image) => sum + image.bytes, 0);
      for (const image of removed)
        await (flags.json ? terminal.json({ host, ...image }) : terminal.table([[host, image.image]]));
      terminal.say(
        `${host}: ${removed.length} images of ${describeSize(bytes)} ${flags.dryRun ? 'would be removed' : 'were removed'}.`,
      );
    }
  });
}

/** Returns the hosts to ask: the one that the flag names, else all that are up and have containers. */
async function findHosts(fleet: Fleet, { host }: Flags): Promise<string[]> {
  if (host !== undefined) return [host];
  const hasImages = ({ state, policies }: HostInfo) => state !== 'unreachable' && policies.includes('docker');
  const found = (await fleet.hosts()).filter(hasImages).map(({ id }) => id);
  if (found.length > 0) return found;
  throw new ShellfleetError('HOST_UNREACHABLE', 'No host with the policy docker is up.');
}
