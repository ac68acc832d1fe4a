import {
  type Command as FleetCommand,
  type LogChunk,
  type OutputChunk,
  type Result,
  type Session,
  ShellfleetError,
} from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { findById } from './find-by-id.ts';
import { showHostLog } from './host-log.ts';
import { sayRedactedFormats } from './redacted-formats.ts';
import { showChunk } from './show-command.ts';
import { TailLines } from './tail-lines.ts';
import type { CliOutput } from './terminal.ts';
import { parseCount, parseSize } from './units.ts';

interface Flags {
  host?: string;
  follow?: boolean;
  since?: string;
  tail?: number;
  stream?: 'stdout' | 'stderr';
  offset?: number;
  length?: number;
  json?: boolean;
}

export function registerLogs(program: Command, context: Context): void {
  program
    .command('logs')
    .description('show the output of a command, or of all commands of a session, or the log of the worker of a host')
    .argument('[command|session]')
    .addOption(new Option('--host <id>', 'the log of the worker of this host').env('SHELLFLEET_LOGS_HOST'))
    .addOption(new Option('-f, --follow', 'continue until the command ends').env('SHELLFLEET_LOGS_FOLLOW'))
    .addOption(
      new Option('--tail <lines>', 'only the last lines, of both streams together')
        .argParser(parseCount)
        .env('SHELLFLEET_LOGS_TAIL'),
    )
    .addOption(
      new Option(
        '--since <id>',
        'only the output after this chunk; with --host: only lines since 10m ago, or since a time',
      ).env('SHELLFLEET_LOGS_SINCE'),
    )
    .addOption(
      new Option('--stream <name>', 'only this stream').choices(['stdout', 'stderr']).env('SHELLFLEET_LOGS_STREAM'),
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
    .action((id: string | undefined, flags: Flags) => show(context, id, flags));
}

function show(context: Context, id: string | undefined, { host, ...flags }: Flags): Promise<void> {
  if ((id === undefined) === (host === undefined))
    throw new ShellfleetError('COMMAND_INVALID', 'Name a command or a session, or a host with --host.');
  if (host === undefined) return logs(context, id ?? '', flags);
  if (flags.stream !== undefined) throw new ShellfleetError('COMMAND_INVALID', 'logs has no --stream of a host.');
  refuse(flags, ['offset', 'length'], 'of a host');
  return showHostLog(context, host, flags);
}

async function logs(context: Context, id: string, flags: Flags): Promise<void> {
  const { terminal } = context;
  if (flags.since !== undefined) refuse(flags, ['offset', 'length', 'tail'], 'together with --since');
  if (flags.tail !== undefined) refuse(flags, ['offset', 'length'], 'together with --tail');
  await context.withFleet(async (fleet) => {
    const found = await findById(fleet, id);
    if (!('log' in found)) refuse(flags, ['offset', 'length'], 'of a session: give the id of a command');
    const ended = new Map<string, Result>();
    try {
      if ('log' in found && flags.since === undefined) await showLog(readCommandLog(terminal, found, flags), flags);
      else await showLog(readStored(terminal, found, flags, ended), flags);
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
    if (terminal.readerGone.aborted) return;
    const own = 'log' in found ? await found.resultNow().catch(() => undefined) : undefined;
    await sayRedactedFormats(terminal, own === undefined ? ended.values() : [own]);
  });
}

/** Refuses flags that would have no effect. */
function refuse(flags: Flags, names: ('offset' | 'length' | 'tail')[], where: string): void {
  const given = names.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  throw new ShellfleetError('COMMAND_INVALID', `logs has no --${given} ${where}.`);
}

type Piece = Pick<LogChunk, 'data' | 'text'> & { omittedBytes?: number };

interface Log<T extends Piece> {
  read(options: { follow: boolean; from: From<T> | undefined }): AsyncIterable<T>;
  /** Returns the piece without the bytes before `at`. */
  cut(piece: T, at: number): T;
  show(piece: T): Promise<void>;
}

/** Place where a second reading begins. */
interface From<T> {
  last: T;
  /** Number of bytes before this place, whether they were read or are missing. */
  bytes: number;
}

async function showLog<T extends Piece>(log: Log<T>, { tail, follow = false }: Flags): Promise<void> {
  let from: From<T> | undefined;
  if (tail !== undefined) {
    const lines = new TailLines<T>(tail, log.cut);
    for await (const piece of log.read({ follow: false, from: undefined })) {
      lines.push(piece);
      from = { last: piece, bytes: (from?.bytes ?? 0) + piece.data.byteLength + (piece.omittedBytes ?? 0) };
    }
    for (const piece of lines.end()) await log.show(piece);
    if (!follow) return;
  }
  for await (const piece of log.read({ follow, from })) await log.show(piece);
}

/** Reads the log of a command as far as it is stored. */
function readCommandLog(terminal: CliOutput, command: FleetCommand, flags: Flags): Log<LogChunk> {
  const { stream, offset, length } = flags;
  const range = { ...(stream && { stream }), ...(offset && { offset }), ...(length !== undefined && { length }) };
  return {
    read: ({ follow, from }) =>
      command.log({ ...range, ...(from && { offset: from.bytes }), follow, signal: terminal.readerGone }),
    cut: (piece, at) => ({ ...cutPiece(piece, at), offset: piece.offset + at }),
    show: (piece) => showLogChunk(terminal, piece, flags.json === true),
  };
}

/** Prints stored output of one command or of all. `ended` gets the Results of commands with replaced text. */
function readStored(
  terminal: CliOutput,
  source: FleetCommand | Session,
  flags: Flags,
  ended: Map<string, Result>,
): Log<OutputChunk> {
  return {
    async *read({ follow, from }) {
      const after = from?.last.id ?? flags.since;
      const position = { follow, signal: terminal.readerGone, ...(after !== undefined && { after }) };
      const chunks = 'output' in source ? source.output(position) : outputOf(source.events(position), ended);
      for await (const chunk of chunks) if (flags.stream === undefined || chunk.stream === flags.stream) yield chunk;
    },
    cut: cutPiece,
    show: (chunk) => showChunk(terminal, chunk, flags.json === true),
  };
}

function cutPiece<T extends Piece>(piece: T, at: number): T {
  const data = piece.data.subarray(at);
  // A gap before the piece is not a part of the last lines.
  return { ...piece, data, text: Buffer.from(data).toString(), omittedBytes: undefined };
}

async function showLogChunk(terminal: CliOutput, chunk: LogChunk, json: boolean): Promise<void> {
  const { id, stream, offset, data, text, omittedBytes } = chunk;
  if (json) {
    const base64 = Buffer.from(data).toString('base64');
    const place = { type: 'output', ...(id && { id }), stream, offset };
    return terminal.json({ ...place, text, base64, ...(omittedBytes && { omittedBytes }) });
  }
  if (omittedBytes)
    terminal.say(
      `${omittedBytes} bytes of ${stream} are missing here. They were trimmed since, or its overflow log had no room for them.`,
    );
  if (data.byteLength > 0) await terminal.write(stream, data);
}

async function* outputOf(
  events: ReturnType<Session['events']>,
  ended: Map<string, Result>,
): AsyncGenerator<OutputChunk> {
  for await (const event of events) {
    if (event.type === 'command.output') yield event.data;
    if (event.type !== 'command.completed' || Object.keys(event.data.redactions).length === 0) continue;
    ended.set(event.data.commandId, event.data);
  }
}
