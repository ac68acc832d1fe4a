import type { Fleet } from '@shellfleet/client';
import {
  ensureShellfleetError,
  type HostImage,
  type HostInfo,
  type RunningPull,
  ShellfleetError,
} from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { exitCodeOfError } from './exit-codes.ts';
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
    const hosts = await findHosts(fleet, flags);
    const rows = new Map<string, string[][]>();
    const listOne = async (host: string) => {
      const images = await fleet.hostImages(host);
      rows.set(
        host,
        images.map((image) => toRow(host, image)),
      );
      if (flags.json) for (const image of images) await terminal.json({ host, ...image });
    };
    const jobs = hosts.map((host) => ({ host, run: () => listOne(host) }));
    await runAll(context, flags, jobs);
    if (flags.json) return;
    const head = ['HOST', 'IMAGE', 'DIGEST', 'SIZE', 'LAST USED', 'STAYS BECAUSE'];
    await terminal.table([head, ...hosts.flatMap((host) => rows.get(host) ?? [])]);
  });
}

function toRow(host: string, { image, digest, bytes, isPulled, inUse, pinned, usedAt = '-' }: HostImage): string[] {
  const why = [inUse && 'in use', pinned && 'pinned', !isPulled && 'not pulled by the host'];
  const stays = why.filter((reason) => reason !== false).join(', ');
  return [host, image, digest.replace(/^sha256:/, '').slice(0, 12), describeSize(bytes), usedAt, stays];
}

async function pull(context: Context, names: readonly string[], flags: Flags): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const running = new Map<string, string>();
    const pullOne = async (host: string, image: string) => {
      const onProgress = (pull: RunningPull | undefined) => {
        running.set(`${host} ${image}`, `${host}: ${describePull(pull ?? { image })}`);
        terminal.progress([...running.values()].join(', '));
      };
      const pulled = fleet.pullImage(host, image, flags.json ? {} : { onProgress });
      const digest = await pulled.finally(() => running.delete(`${host} ${image}`));
      if (flags.json) await terminal.json({ host, image, digest });
      else terminal.say(`${host} has ${image} (${digest}).`);
    };
    const images = [...new Set(names)];
    const jobs = (await findHosts(fleet, flags)).flatMap((host) =>
      images.map((image) => ({ host, run: () => pullOne(host, image) })),
    );
    await runAll(context, flags, jobs);
  });
}

async function prune(context: Context, flags: Flags & { dryRun?: boolean }): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const pruneOne = async (host: string) => {
      const removed = await fleet.pruneImages(host, { dryRun: flags.dryRun });
      for (const image of removed)
        await (flags.json ? terminal.json({ host, ...image }) : terminal.table([[host, image.image]]));
      const bytes = removed.reduce((sum, image) => sum + image.bytes, 0);
      const [images, are] = removed.length === 1 ? ['1 image', 'was'] : [`${removed.length} images`, 'were'];
      terminal.say(`${host}: ${images} of ${describeSize(bytes)} ${flags.dryRun ? 'would be' : are} removed.`);
    };
    const jobs = (await findHosts(fleet, flags)).map((host) => ({ host, run: () => pruneOne(host) }));
    await runAll(context, flags, jobs);
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

interface Job {
  host: string;
  run(): Promise<void>;
}

/**
 * Runs all jobs together, also after the failure of one. Reports each failure with its host; the first one sets the
 * exit code. The failure of the only job is thrown.
 */
async function runAll(context: Context, { json }: Flags, jobs: readonly Job[]): Promise<void> {
  const [only] = jobs;
  if (jobs.length === 1) return only?.run();
  const ends = jobs.map(({ host, run }) =>
    run().catch(async (error: unknown) => {
      const { code, message, retryable } = ensureShellfleetError(error);
      context.terminal.fail(new ShellfleetError(code, `${host}: ${message}`, {}, { cause: error }));
      if (json) await context.terminal.json({ type: 'error', host, code, message, retryable });
      return exitCodeOfError(error);
    }),
  );
  const failed = (await Promise.all(ends)).find((exitCode) => exitCode !== undefined);
  if (failed !== undefined) context.setExitCode(failed);
}
