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
    .description('write what somebody needs to help into a directory or an archive, without secrets')
    .addOption(
      new Option(
        '--out <path>',
        'new directory, or archive if it ends with .tgz or .tar.gz; default: shellfleet-support-<time>',
      ).env('SHELLFLEET_BUNDLE_OUT'),
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
  const path = resolve(out ?? `shellfleet-support-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`);
  const { withFleet } = context;
  const files = await writeBundle(path, { env, redisUrl, namespace, withFleet }).catch(toWriteError(path));
  if (json) return context.terminal.json({ path, files });
  await context.terminal.line(path);
  context.terminal.say(
    'Secrets are replaced. Look through the files before you send them: they have names of sessions.',
  );
}

const toWriteError = (path: string) => (error: NodeJS.ErrnoException) => {
  if (error.code === undefined || error instanceof ShellfleetError) throw error;
  throw new ShellfleetError('COMMAND_INVALID', `${path} cannot be written: ${error.message}.`, {}, { cause: error });
};
