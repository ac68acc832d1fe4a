import type { Command } from 'commander';
import type { Context } from './context.ts';

export function registerClose(program: Command, context: Context): void {
  program
    .command('close')
    .description('end a session, its commands and its sandbox')
    .argument('<session>')
    .action((id: string) =>
      context.withFleet(async (fleet) => {
        const session = await fleet.attach(id);
        const open = session !== undefined && (await session.info()).state !== 'closed';
        await session?.close();
        context.terminal.say(open ? `${id} is closed.` : `${id} was not open.`);
      }),
    );
}
