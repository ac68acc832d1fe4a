import { Fleet } from '@shellfleet/client';
import type { Command } from 'commander';
import type { Config } from '../config.ts';
import type { CliOutput } from './terminal.ts';

export interface Context {
  config: Config;
  terminal: CliOutput;
  setExitCode(code: number): void;
  /** Connects, runs the verb, and disconnects, also after an error. */
  withFleet(use: (fleet: Fleet) => Promise<void>): Promise<void>;
}

export function createVerbContext(
  program: Command,
  config: Config,
  terminal: CliOutput,
  setExitCode: (code: number) => void,
): Context {
  return {
    config,
    terminal,
    setExitCode,
    async withFleet(use) {
      const { redisUrl, namespace, tenant } = program.opts<{
        redisUrl?: string;
        namespace?: string;
        tenant?: string;
      }>();
      const fleet = await Fleet.connect({
        // An empty variable counts as unset.
        ...(redisUrl ? { redisUrl } : {}),
        ...(namespace ? { namespace } : {}),
        ...(tenant ? { tenant } : {}),
      });
      try {
        await use(fleet);
      } finally {
        await fleet.close();
      }
    },
  };
}
