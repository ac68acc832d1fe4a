import { fleetFilePath, readFleetFile, writeFleetFile } from '@shellfleet/client';
import { DEFAULTS, namespaceSchema, parseOrThrow, ShellfleetError } from '@shellfleet/protocol';
import { createSealKey } from '@shellfleet/sealing';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import { type InvitingFleet, makeInvitation } from '../fleet-process/make-invitation.ts';
import { hideInvitation } from '../hide-invitation.ts';
import type { Context } from './context.ts';

const sealKeysSchema = z.array(z.string().min(1)).min(1, 'must hold a key: set SHELLFLEET_SEAL_KEY');

export function registerInvite(hosts: Command, program: Command, context: Context): void {
  hosts
    .command('invite')
    .description('print what a worker on another machine needs to join, with a Redis user for it; it holds secrets')
    .addOption(
      new Option('--worker-redis-url <url>', 'URL of Redis for the other machine; with a user, none is made').env(
        'SHELLFLEET_WORKER_REDIS_URL',
      ),
    )
    .addOption(
      new Option('--new-fleet', 'begin a fleet in this Redis, with a new seal key unless one is given').env(
        'SHELLFLEET_NEW_FLEET',
      ),
    )
    .action((flags: InviteFlags) => invite(flags, program.opts(), context));
}

interface InviteFlags {
  workerRedisUrl?: string;
  newFleet?: boolean;
}

async function invite(
  { workerRedisUrl, newFleet: isNew = false }: InviteFlags,
  given: { redisUrl?: string; namespace?: string },
  { config, terminal }: Context,
): Promise<void> {
  if (process.stdout.isTTY) throw onTerminal();
  hideInvitation();
  const fleet = await readFleet(given, config.env, isNew);
  const { invitation, user, warning } = await makeInvitation({ ...fleet, workerRedisUrl, isNew });
  await terminal.json(invitation);
  if (isNew) terminal.say(await rememberFleet(fleet, config.env));
  terminal.say('The invitation holds the keys of the fleet: send it over a safe way, and keep it at mode 0600.');
  if (user !== undefined)
    terminal.say(`It is for the new Redis user ${user}. ACL DELUSER ${user} in redis-cli withdraws it.`);
  if (warning !== undefined) terminal.say(warning);
}

async function readFleet(
  given: { redisUrl?: string; namespace?: string },
  env: NodeJS.ProcessEnv,
  isNew: boolean,
): Promise<Omit<InvitingFleet, 'workerRedisUrl' | 'isNew'>> {
  const file = await readFleetFile(env);
  const redisUrl = given.redisUrl || file?.redisUrl;
  if (redisUrl === undefined) throw noFleet();
  const own = file?.redisUrl === redisUrl ? file : undefined;
  const listed = env.SHELLFLEET_SEAL_KEY || undefined;
  const keys = listed?.split(',').map((key) => key.trim()) ?? own?.sealKeys;
  return {
    redisUrl,
    namespace: parseOrThrow(
      namespaceSchema,
      given.namespace || own?.namespace || DEFAULTS.connection.namespace,
      'COMMAND_INVALID',
      'The namespace',
    ),
    sealKeys: parseOrThrow(
      sealKeysSchema,
      keys ?? (isNew ? [createSealKey()] : []),
      'COMMAND_INVALID',
      'The list of seal keys',
    ),
  };
}

/** Writes the connection file of this user, unless there is one. Returns what became of it, as a sentence. */
async function rememberFleet(
  { redisUrl, namespace, sealKeys }: Pick<InvitingFleet, 'redisUrl' | 'namespace' | 'sealKeys'>,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const path = fleetFilePath(env);
  if ((await readFleetFile(env)) !== undefined)
    return `${path} names another fleet, so the verbs of this user need SHELLFLEET_REDIS_URL and SHELLFLEET_SEAL_KEY for this one.`;
  await writeFleetFile({ version: 1, namespace, redisUrl, sealKeys }, env);
  return `The verbs of this user find the fleet by ${path}, which has its keys: keep a copy of it.`;
}

function onTerminal(): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    'An invitation holds secrets, and a terminal keeps what it shows. Write it to a file: shellfleet hosts invite > join.json.',
  );
}

function noFleet(): ShellfleetError {
  return new ShellfleetError(
    'QUEUE_UNAVAILABLE',
    'No fleet was found. Set SHELLFLEET_REDIS_URL and SHELLFLEET_SEAL_KEY as on a host of the fleet.',
  );
}
