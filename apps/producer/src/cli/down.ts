import type { Command } from 'commander';
import { endFleet } from '../fleet-process/down.ts';
import type { Context } from './context.ts';

export function registerDown(program: Command, { config, terminal }: Context): void {
  program
    .command('down')
    .description('end the fleet that `up` started on this machine')
    .action(async () => {
      const ended = await endFleet(config.env);
      terminal.say(ended ? 'The fleet of this machine has ended.' : 'No fleet of this machine was running.');
    });
}
