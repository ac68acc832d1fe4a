import { resolve } from 'node:path';
import { readFleetFile } from '@shellfleet/client';
import { ShellfleetError } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { findOwnFleet } from '../fleet-process/own-fleet.ts';
import { writeBundle } from '../support-bundle/write-bundle.ts';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

interface Flags {
  out?: string;
  json?: boolean;
}

export function registerSupportBundle(program: Command, context: Context): void {
  program
    .command('support-bundle')
    .description('write what somebody needs to help into a directory, without secrets')
    .addOption(
      new Option('--out <directory>', 'new directory; default: shellfleet-support-<time>').env('SHELLFLEET_BUNDLE_OUT'),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => supportBundle(program, context, flags));
}

async function supportBundle(program: Command, context: Context, { out, json }: Flags): Promise<void> {
  const { env } = context.config;
  const named = program.opts<{ redisUrl?: string; namespace?: string }>();
  const file = await readFleetFile(env).catch(() => undefined);
  const redisUrl = named.redisUrl || env.SHELLFLEET_REDIS_URL || file?.redisUrl;
  const { namespace } = await findOwnFleet(named, env);
  const directory = resolve(out ?? `shellfleet-support-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`);
  const { withFleet } = context;
  const files = await writeBundle(directory, { env, redisUrl, namespace, withFleet }).catch(toWriteError(directory));
  if (json) return context.terminal.json({ directory, files });
  await context.terminal.line(directory);
  context.terminal.say(
    'Secrets are replaced. Look through the files before you send them: they have names of sessions.',
  );
}

const toWriteError = (directory: string) => (error: NodeJS.ErrnoException) => {
  if (error.code === undefined || error instanceof ShellfleetError) throw error;
  throw new ShellfleetError(
    'COMMAND_INVALID',
    `${directory} cannot be written: ${error.message}.`,
    {},
    { cause: error },
  );
};
