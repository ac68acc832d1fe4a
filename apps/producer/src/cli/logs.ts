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
import { parseSize } from './units.ts';

interface Flags {
  follow?: boolean;
  since?: string;
  stream?: 'stdout' | 'stderr';
  offset?: number;
  length?: number;
  json?: boolean;
}

export function registerLogs(program: Command, context: Context): void {
  program
    .command('logs')
    .description('show the output of a command, or of all commands of a session')
    .argument('<command|session>')
    .addOption(new Option('-f, --follow', 'continue until the command ends').env('SHELLFLEET_LOGS_FOLLOW'))
    .addOption(new Option('--since <id>', 'only the output after this chunk').env('SHELLFLEET_LOGS_SINCE'))
    .addOption(
      new Option('--stream <name>', 'only this stream (of a command)')
        .choices(['stdout', 'stderr'])
        .env('SHELLFLEET_LOGS_STREAM'),
    )
    .addOption(
      new Option('--offset <bytes>', 'bytes of the log to skip (of a command)')
        .argParser(parseSize)
        .env('SHELLFLEET_LOGS_OFFSET'),
    )
    .addOption(
      new Option('--length <bytes>', 'greatest number of bytes to show (of a command)')
        .argParser(parseSize)
        .env('SHELLFLEET_LOGS_LENGTH'),
    )
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
    try {
      if ('log' in found && flags.since === undefined) return await showLog(context, found, flags);
      const chunks = 'output' in found ? found.output(position) : outputOf(found.events(position));
      for await (const chunk of chunks) await showChunk(terminal, chunk, flags.json === true);
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
  });
}

/** Shows the whole log of a command, as far as it is still stored. */
async function showLog({ terminal }: Context, command: FleetCommand, flags: Flags): Promise<void> {
  const { stream, offset, length, follow = false } = flags;
  const range = { ...(stream && { stream }), ...(offset && { offset }), ...(length !== undefined && { length }) };
  for await (const chunk of command.log({ ...range, follow, signal: terminal.readerGone })) {
    const { data, omittedBytes } = chunk;
    if (flags.json === true) {
      const { id, text, offset, stream } = chunk;
      const base64 = Buffer.from(data).toString('base64');
      await terminal.json({
        type: 'output',
        ...(id && { id }),
        stream,
        offset,
        text,
        base64,
        ...(omittedBytes && { omittedBytes }),
      });
      continue;
    }
    if (omittedBytes) terminal.say(`${omittedBytes} bytes of ${chunk.stream} are missing here.`);
    if (data.byteLength > 0) await terminal.write(chunk.stream, data);
  }
}

async function* outputOf(events: ReturnType<Session['events']>): AsyncGenerator<OutputChunk> {
  for await (const event of events) if (event.type === 'command.output') yield event.data;
}

/** A session id may look like the id of a command. */
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
