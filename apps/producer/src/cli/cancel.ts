import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';

interface Flags {
  reason?: string;
  json?: boolean;
}

export function registerCancel(program: Command, context: Context): void {
  program
    .command('cancel')
    .description('cancel a command')
    .argument('<command>')
    .addOption(new Option('--reason <text>', 'kept with the command').env('SHELLFLEET_CANCEL_REASON'))
    .addOption(jsonFlag())
    .action((id: string, flags: Flags) =>
      context.withFleet(async (fleet) => {
        const command = await fleet.command(id);
        const cancelled = await command.cancel(flags.reason);
        if (flags.json) return context.terminal.json({ commandId: command.id, cancelled });
        context.terminal.say(cancelled ? `${command.id} ends as a cancellation.` : `${command.id} had already ended.`);
      }),
    );
}
