import { type Fleet, type SessionInfo, ShellfleetError } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import type { Context } from './context.ts';
import { exitCodeOfError } from './exit-codes.ts';
import { collectPair } from './pairs.ts';

/** Most sessions that are closed at a time. A close can take as long as the session's shutdown commands. */
const AT_ONCE = 8;

interface Flags {
  label?: Record<string, string>;
  purge?: boolean;
}

export function registerClose(program: Command, context: Context): void {
  program
    .command('close')
    .description('end sessions, their commands and their sandboxes')
    .argument('[session...]')
    .addOption(
      new Option('--label <name=value>', 'every session that has this label; again: all of these labels')
        .argParser(collectPair)
        .env('SHELLFLEET_CLOSE_LABEL'),
    )
    .addOption(
      new Option('--purge', 'remove their containers that are kept for a post-mortem too').env(
        'SHELLFLEET_CLOSE_PURGE',
      ),
    )
    .action((ids: string[], flags: Flags) => close(context, ids, flags));
}

/** Closes all sessions, also after a failure. The first failure sets the exit code. */
async function close(context: Context, ids: readonly string[], { label: labels, purge }: Flags): Promise<void> {
  const { terminal } = context;
  if (ids.length === 0 && labels === undefined) {
    throw new ShellfleetError('COMMAND_INVALID', 'Name the sessions to close, or give --label NAME=VALUE.');
  }
  await context.withFleet(async (fleet) => {
    const all = new Set(ids);
    if (labels !== undefined) for await (const { id } of fleet.sessions({ labels })) all.add(id);
    if (all.size === 0) terminal.say('No session has this label.');
    const failures = new Map<string, unknown>();
    const waiting = all.values();
    const closeNext = async () => {
      for (const id of waiting) {
        try {
          terminal.say(await closeOne(fleet, id));
          if (purge === true) terminal.say(describePurged(id, await fleet.purge(id)));
        } catch (error) {
          failures.set(id, error);
          terminal.fail(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, closeNext));
    const [first] = [...all].filter((id) => failures.has(id));
    if (first !== undefined) context.setExitCode(exitCodeOfError(failures.get(first)));
  });
}

function describePurged(id: string, containers: number): string {
  if (containers === 0) return `Nothing of ${id} was kept.`;
  return `${containers === 1 ? 'The container' : `${containers} containers`} that ${containers === 1 ? 'was' : 'were'} kept of ${id}: removed.`;
}

async function closeOne(fleet: Fleet, id: string): Promise<string> {
  const session = await fleet.attach(id);
  const before = await session?.info();
  await session?.close();
  // The host may have become unreachable since the session was read.
  const host = before?.hostId ? (await fleet.hosts()).find((one) => one.id === before.hostId) : undefined;
  const isAway =
    before?.state === 'unreachable' || (before?.hostId && host?.state !== 'up' && host?.state !== 'draining');
  return describe(id, before, Boolean(isAway));
}

function describe(id: string, before: SessionInfo | undefined, isHostAway: boolean): string {
  if (before === undefined || before.state === 'closed') return `${id} was not open.`;
  if (!isHostAway) return `${id} is closed.`;
  return `${id} is closed. Its host ${before.hostId} is unreachable: if the host still runs, so do the sandbox and what runs in it. The host removes them when it reaches the fleet again.`;
}
