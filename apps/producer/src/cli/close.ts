import type { SessionInfo } from '@shellfleet/client';
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
        const before = await session?.info();
        await session?.close();
        context.terminal.say(describe(id, before));
      }),
    );
}

function describe(id: string, before: SessionInfo | undefined): string {
  if (before === undefined || before.state === 'closed') return `${id} was not open.`;
  if (before.state !== 'unreachable') return `${id} is closed.`;
  return `${id} is closed. Its host ${before.hostId} is unreachable: if the host still runs, so do the sandbox and what runs in it. The host removes them when it reaches the fleet again.`;
}
