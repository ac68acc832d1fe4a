import type { Command } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { showResult } from './show-command.ts';

export function registerWait(program: Command, context: Context): void {
  program
    .command('wait')
    .description('wait for a command; exits with its exit code')
    .argument('<command>')
    .addOption(jsonFlag())
    .action((id: string, flags: { json?: boolean }) =>
      context.withFleet(async (fleet) => {
        const command = await fleet.command(id);
        await showResult(context, await command.result(), flags.json === true);
      }),
    );
}
