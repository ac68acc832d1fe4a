import type { FleetEvent } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { parseTime } from './units.ts';

interface Flags {
  follow?: boolean;
  since?: string;
  allTenants?: boolean;
  json?: boolean;
}

export function registerEvents(program: Command, context: Context): void {
  program
    .command('events')
    .description('show what happens in the fleet: hosts, sessions, ends of commands, questions to people')
    .addOption(new Option('-f, --follow', 'continue until Ctrl-C').env('SHELLFLEET_EVENTS_FOLLOW'))
    .addOption(
      new Option('--since <time>', 'also stored events of sessions: since 10m ago, a time, or the id of an event').env(
        'SHELLFLEET_EVENTS_SINCE',
      ),
    )
    .addOption(
      new Option('--all-tenants', 'the sessions of all tenants, for operators').env('SHELLFLEET_EVENTS_ALL_TENANTS'),
    )
    .addOption(jsonFlag())
    .action((flags: Flags) => show(context, flags));
}

async function show({ terminal, withFleet }: Context, { since, json, ...flags }: Flags): Promise<void> {
  // Without --follow, the events of the last ten minutes are shown.
  const after = since === undefined ? (flags.follow ? undefined : toId('10m')) : toId(since);
  await withFleet(async (fleet) => {
    const { follow = false, allTenants } = flags;
    try {
      for await (const event of fleet.events({ follow, allTenants, after, signal: terminal.readerGone }))
        await (json ? terminal.json(event) : terminal.line(formatEvent(event)));
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
  });
}

/** Returns the position in the events: the id of an event, or a time in ms. */
function toId(since: string): string {
  return /^\d+-\d+$/.test(since) ? since : String(+parseTime(since));
}

/** Formats an event for a person: time, type, what it is about, and its data. */
export function formatEvent(event: FleetEvent): string {
  const about = 'sessionId' in event ? [event.tenant, event.commandId ?? event.sessionId] : [];
  const host = 'hostId' in event ? [event.hostId] : [];
  const data = 'data' in event ? Object.entries(event.data) : [];
  const shown = data.map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return toPrintable([event.at, event.type.padEnd(18), ...about, ...host, ...shown].join(' '));
}
