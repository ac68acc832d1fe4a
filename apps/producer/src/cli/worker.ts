import { type Command, Option } from 'commander';
import { runWorkerProcess } from '../fleet-process/run-worker.ts';
import type { Context } from './context.ts';
import { policiesFlag, slotsFlag } from './worker-flags.ts';

export function registerWorker(program: Command, { config, setExitCode }: Context): void {
  program
    .command('worker')
    .description('run a worker of a fleet in the foreground; docs/operations.md lists its variables')
    .addOption(slotsFlag())
    .addOption(policiesFlag())
    .addOption(new Option('--host-id <id>', 'name of this host').env('SHELLFLEET_HOST_ID'))
    .action(async (flags: { slots?: string; policies?: string; hostId?: string }) => {
      const { redisUrl, namespace } = program.opts<{ redisUrl?: string; namespace?: string }>();
      const given = {
        SHELLFLEET_REDIS_URL: redisUrl,
        SHELLFLEET_NAMESPACE: namespace,
        SHELLFLEET_SLOTS: flags.slots,
        SHELLFLEET_POLICIES: flags.policies,
        SHELLFLEET_HOST_ID: flags.hostId,
      };
      const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      setExitCode(await runWorkerProcess({ ...config.env, ...set }));
    });
}
