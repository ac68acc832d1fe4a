import type { SessionInfo } from '@shellfleet/client';
import type { Command } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { whyWaiting } from './why-waiting.ts';

export function registerQueue(program: Command, context: Context): void {
  program
    .command('queue')
    .description('list sessions with waiting commands, and their position for a slot')
    .addOption(jsonFlag())
    .action((flags: { json?: boolean }) => queue(context, flags.json === true));
}

async function queue(context: Context, json: boolean): Promise<void> {
  const { terminal } = context;
  await context.withFleet(async (fleet) => {
    const waiting: SessionInfo[] = [];
    for await (const info of fleet.sessions()) if (info.queuedCommands > 0) waiting.push(info);
    waiting.sort((a, b) => (a.position ?? Infinity) - (b.position ?? Infinity) || 0);
    if (json) {
      for (const info of waiting) await terminal.json(info);
      return;
    }
    const rows = waiting.map((info) => [
      info.position === undefined ? '-' : String(info.position),
      info.id,
      info.state,
      String(info.queuedCommands),
      info.etaMs === undefined ? '-' : `${Math.ceil(info.etaMs / 1_000)} s`,
      whyWaiting(info),
    ]);
    await terminal.table([['POSITION', 'SESSION', 'STATE', 'COMMANDS', 'IN ABOUT', 'WAITS BECAUSE'], ...rows]);
    const commands = waiting.reduce((total, info) => total + info.queuedCommands, 0);
    const sessions = waiting.filter(({ state }) => state === 'queued' || state === 'lost').length;
    terminal.say(`${sessions} sessions wait for a slot, and ${commands} commands wait.`);
  });
}
