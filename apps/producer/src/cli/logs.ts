import {
  type Fleet,
  type Command as FleetCommand,
  isShellfleetError,
  type OutputChunk,
  type Session,
  ShellfleetError,
} from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { showChunk } from './show-command.ts';

interface Flags {
  follow?: boolean;
  since?: string;
  json?: boolean;
}

export function registerLogs(program: Command, context: Context): void {
  program
    .command('logs')
    .description('show the output of a command, or of all commands of a session')
    .argument('<command|session>')
    .addOption(new Option('-f, --follow', 'go on until it ends').env('SHELLFLEET_LOGS_FOLLOW'))
    .addOption(new Option('--since <id>', 'only what came behind this chunk').env('SHELLFLEET_LOGS_SINCE'))
    .addOption(jsonFlag())
    .action((id: string, flags: Flags) => logs(context, id, flags));
}

async function logs(context: Context, id: string, flags: Flags): Promise<void> {
  const { terminal } = context;
  const position = {
    follow: flags.follow === true,
    signal: terminal.readerGone,
    ...(flags.since === undefined ? {} : { after: flags.since }),
  };
  await context.withFleet(async (fleet) => {
    const found = (await findCommand(fleet, id)) ?? (await findSession(fleet, id));
    const chunks = 'output' in found ? found.output(position) : outputOf(found.events(position));
    try {
      for await (const chunk of chunks) await showChunk(terminal, chunk, flags.json === true);
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
  });
}

async function* outputOf(events: ReturnType<Session['events']>): AsyncGenerator<OutputChunk> {
  for await (const event of events) if (event.type === 'command.output') yield event.data as OutputChunk;
}

/** A session's name may look like the id of a command. */
async function findCommand(fleet: Fleet, id: string): Promise<FleetCommand | undefined> {
  try {
    return await fleet.command(id);
  } catch (error) {
    if (isShellfleetError(error) && ['COMMAND_INVALID', 'RESULT_EXPIRED'].includes(error.code)) return undefined;
    throw error;
  }
}

async function findSession(fleet: Fleet, id: string): Promise<Session> {
  const session = await fleet.attach(id);
  if (session !== undefined) return session;
  throw new ShellfleetError(
    'SESSION_NOT_FOUND',
    `There is no command and no session ${id}. \`shellfleet ps --all\` lists sessions.`,
    { id },
  );
}
