import { ShellfleetError } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { examineHost } from '../fleet-process/examine-host.ts';
import { readInvitation } from '../fleet-process/invitation.ts';
import { runWorkerProcess } from '../fleet-process/run-worker.ts';
import type { Context } from './context.ts';
import { policiesFlag, slotsFlag } from './worker-flags.ts';

/** Variables that an invitation replaces. */
const JOINED = ['SHELLFLEET_REDIS_URL', 'SHELLFLEET_NAMESPACE', 'SHELLFLEET_SEAL_KEY'];

export function registerWorker(program: Command, context: Context): void {
  const { config, setExitCode } = context;
  program
    .command('worker')
    .description('run a worker of a fleet in the foreground; docs/operations.md lists its variables')
    .addOption(slotsFlag())
    .addOption(policiesFlag())
    .addOption(new Option('--host-id <id>', 'name of this host').env('SHELLFLEET_HOST_ID'))
    .addOption(
      new Option('--join <file>', 'join the fleet of an invitation (`hosts invite`); - reads it from stdin').env(
        'SHELLFLEET_JOIN',
      ),
    )
    .action(async (flags: { slots?: string; policies?: string; hostId?: string; join?: string }) => {
      const { redisUrl, namespace } = program.opts<{ redisUrl?: string; namespace?: string }>();
      const given = {
        SHELLFLEET_REDIS_URL: redisUrl,
        SHELLFLEET_NAMESPACE: namespace,
        SHELLFLEET_SLOTS: flags.slots,
        SHELLFLEET_POLICIES: flags.policies,
        SHELLFLEET_HOST_ID: flags.hostId,
      };
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      const env = { ...config.env, ...set };
      const joined = flags.join === undefined ? {} : await join(flags.join, env, context);
      if (joined !== undefined) setExitCode(await runWorkerProcess({ ...env, ...joined }));
    });
}

/** Returns the variables of an invitation, or undefined if this machine lacks what a worker needs. */
async function join(path: string, env: NodeJS.ProcessEnv, context: Context): Promise<NodeJS.ProcessEnv | undefined> {
  const { terminal, setExitCode } = context;
  const invitation = await readInvitation(path);
  const own = JOINED.filter((name) => env[name]);
  if (own.length > 0) throw setTwice(own);
  const parts = await examineHost(invitation, env);
  for (const { state, name, detail, fix } of parts)
    terminal.say(
      `${state === 'present' ? 'ok' : state}: ${name}: ${detail}${fix === undefined ? '' : `. Fix: ${fix}`}`,
    );
  if (parts.some(({ state, isNeeded }) => state !== 'present' && isNeeded)) {
    terminal.say('The worker was not started, because this machine lacks what it needs.');
    setExitCode(1);
    return undefined;
  }
  return {
    SHELLFLEET_REDIS_URL: invitation.redisUrl,
    SHELLFLEET_NAMESPACE: invitation.namespace,
    SHELLFLEET_SEAL_KEY: invitation.sealKeys.join(','),
  };
}

function setTwice(names: readonly string[]): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    `An invitation names the fleet, and so does ${names.join(', ')}: keep one of the two.`,
  );
}
