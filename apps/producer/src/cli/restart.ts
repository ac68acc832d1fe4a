import { ShellfleetError } from '@shellfleet/client';
import type { Command } from 'commander';
import type { Context } from './context.ts';
import { watchWaiting } from './watch-waiting.ts';

export function registerRestart(program: Command, context: Context): void {
  program
    .command('restart')
    .description('replace the shell of a session with a fresh one, in order with its commands')
    .argument('<session>')
    .action((id: string) =>
      context.withFleet(async (fleet) => {
        const session = await fleet.attach(id);
        if (session === undefined) {
          throw new ShellfleetError(
            'SESSION_NOT_FOUND',
            `There is no session ${id}. \`shellfleet exec ${id} -- true\` opens it.`,
          );
        }
        const { runningCommandId } = await session.info();
        using _watch = watchWaiting(context.terminal, session, { isBehind: (running) => running === runningCommandId });
        await session.restart();
        context.terminal.say(`${id} has a fresh shell.`);
      }),
    );
}
