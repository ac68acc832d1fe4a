import type { Command } from 'commander';
import { endFleet } from '../fleet-process/down.ts';
import { readFleetRecord } from '../fleet-process/fleet-record.ts';
import { describeUse, tryToReadUse } from '../fleet-process/fleet-use.ts';
import { findOwnImages } from '../fleet-process/own-image-names.ts';
import type { Context } from './context.ts';

export function registerDown(program: Command, { config, terminal }: Context): void {
  program
    .command('down')
    .description('end the fleet that `up` started on this machine')
    .action(async () => {
      const record = await readFleetRecord(config.env);
      const use = record && (await tryToReadUse(record, config.env));
      if (use !== undefined) terminal.say(`Ending the fleet, and with it: ${describeUse(use)}`);
      // The engine may end with the fleet, so the images are read before the fleet ends.
      const images = await findOwnImages(config.env);
      const ended = await endFleet(config.env);
      terminal.say(ended ? 'The fleet of this machine has ended.' : 'No fleet of this machine was running.');
      const others = use?.others ?? [];
      if (ended && others.length > 0)
        terminal.say(
          `Still running, without Redis, because \`up\` did not start it: ${others.map((id) => `the worker of host ${id}`).join(', ')}. The next \`up\` finds it again; SIGINT ends it.`,
        );
      if (images.length > 0) terminal.say(describeLeft(images));
    });
}

const describeLeft = (images: readonly string[]) =>
  `Session images stay for the next \`up\`: ${images.join(', ')}. To remove them: docker rmi ${images.join(' ')}, then shellfleet prune --images.`;
