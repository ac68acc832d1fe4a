import { statSync } from 'node:fs';
import { basename, join, posix, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Fleet,
  isShellfleetError,
  type Session,
  ShellfleetError,
  type TransferOptions,
  type TransferProgress,
} from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { existingSession } from './existing-session.ts';
import { exitCodeOfSignal } from './exit-codes.ts';
import { watchWaiting } from './watch-waiting.ts';

interface Flags {
  recursive?: boolean;
  open?: boolean;
  json?: boolean;
}

/** Time for an interrupted copy to remove incomplete files. */
const CLEAN_UP_MS = 1_000;

export function registerCp(program: Command, context: Context): void {
  program
    .command('cp')
    .description('copy a file or directory into a session or out of it (SESSION:/path; - is stdin or stdout)')
    .argument('<from>')
    .argument('<to>')
    .addOption(new Option('-r, --recursive', 'copy directories with everything in them').env('SHELLFLEET_CP_RECURSIVE'))
    .addOption(new Option('--open', 'open the session if there is none with this name').env('SHELLFLEET_CP_OPEN'))
    .addOption(jsonFlag())
    .action((from: string, to: string, flags: Flags) =>
      context.withFleet((fleet) => untilInterrupted(context, (signal) => cp(context, fleet, from, to, flags, signal))),
    );
}

/** Ends the copy at a signal between two steps. Incomplete files have no final name, and are removed. */
async function untilInterrupted(context: Context, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const interrupted = Promise.withResolvers<void>();
  const interrupt = (signal: NodeJS.Signals) => {
    context.setExitCode(exitCodeOfSignal(signal));
    stop.abort();
    interrupted.resolve(delay(CLEAN_UP_MS));
  };
  for (const signal of ENDING_SIGNALS) process.once(signal, interrupt);
  try {
    const done = work(stop.signal);
    done.catch(() => {});
    await Promise.race([done, interrupted.promise]);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
  }
  if (!stop.signal.aborted) return;
  context.terminal.say('Interrupted. A file that was not complete has no part under its name.');
  process.stdin.destroy();
}

async function cp(
  context: Context,
  fleet: Fleet,
  from: string,
  to: string,
  flags: Flags,
  signal: AbortSignal,
): Promise<void> {
  const source = parseRemote(from);
  const target = parseRemote(to);
  const copied: TransferProgress = { bytes: 0, files: 0 };
  const options: TransferOptions = {
    signal,
    onApproval: ({ id, reason }) =>
      context.terminal.say(
        `${from} waits for an approval (${id}: ${reason}); \`shellfleet approvals watch\` shows more, and how to answer.`,
      ),
    onProgress: ({ bytes, files }) => {
      Object.assign(copied, { bytes, files });
      if (!flags.json) context.terminal.progress(`${from}: ${describe(copied)}`);
    },
  };
  const copy = { context, flags, options };
  let place: string;
  if (source !== undefined && target === undefined) {
    const session = await sessionOf(fleet, source, flags);
    using _watch = watchWaiting(context.terminal, session, { showsProgress: false });
    place = await download(session, source.path, to, copy);
  } else if (target !== undefined && source === undefined) {
    if (from !== '-') checkLocal(from, flags);
    const session = await sessionOf(fleet, target, flags);
    using _watch = watchWaiting(context.terminal, session, { showsProgress: false });
    place = `${target.session}:${await upload(session, from, target.path, copy)}`;
  } else {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      'One of the two must be in a session (SESSION:/path), and the other on this machine. A local name with a colon is given as ./name.',
    );
  }
  if (flags.json && place !== '-') await context.terminal.json({ from, to: place, ...copied });
  else if (place !== '-') context.terminal.say(`${from} → ${place}`);
}

interface Copy {
  context: Context;
  flags: Flags;
  options: TransferOptions;
}

/** Downloads, and returns the local path. */
async function download(session: Session, path: string, to: string, { context, flags, options }: Copy) {
  const isDirectory = await isDirectoryThere(session, path);
  if (isDirectory && !flags.recursive) throw needsRecursive(`${session.id}:${path}`);
  if (isStdout(to)) {
    if (isDirectory) throw new ShellfleetError('COMMAND_INVALID', `${path} is a directory, and stdout takes a file.`);
    for await (const piece of session.files.stream(path, options)) {
      if (context.terminal.readerGone.aborted) break;
      await context.terminal.write('stdout', piece);
    }
    return '-';
  }
  const local = isLocalDirectory(to) ? join(to, posix.basename(path)) : to;
  await session.files.download(path, local, options);
  return local;
}

/** Uploads, and returns the remote path. */
async function upload(session: Session, from: string, path: string, { options }: Copy) {
  const isInto = path.endsWith('/') || (await isDirectoryThere(session, path));
  if (from === '-') {
    if (isInto) throw new ShellfleetError('COMMAND_INVALID', `${path} is a directory. Name the file for stdin.`);
    await session.files.write(path, process.stdin, options);
    return path;
  }
  const target = isInto ? posix.join(path, basename(resolve(from))) : path;
  await session.files.upload(from, target, options);
  return target;
}

interface Remote {
  session: string;
  path: string;
}

function parseRemote(text: string): Remote | undefined {
  const [, session, path] = /^([A-Za-z0-9._-]{1,128}):([\s\S]*)$/.exec(text) ?? [];
  return session === undefined || path === undefined ? undefined : { session, path };
}

/** Returns the session. A mistyped id does not open a new session. */
function sessionOf(fleet: Fleet, { session: id }: Remote, { open }: Flags): Promise<Session> {
  return open ? fleet.session(id) : existingSession(fleet, id);
}

async function isDirectoryThere(session: Session, path: string): Promise<boolean> {
  try {
    return (await session.files.stat(`${path.replace(/\/+$/, '')}/.`)).type === 'directory';
  } catch (error) {
    if (isShellfleetError(error) && (error.code === 'FILE_NOT_FOUND' || error.code === 'PATH_INVALID')) return false;
    throw error;
  }
}

/** Checks the local path before a session is used. */
function checkLocal(from: string, { recursive }: Flags): void {
  if (isLocalDirectory(from) && !recursive) throw needsRecursive(from);
}

function needsRecursive(what: string): ShellfleetError {
  return new ShellfleetError('COMMAND_INVALID', `${what} is a directory. Add -r to copy it with everything in it.`);
}

const isStdout = (path: string) => ['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'].includes(path);

function isLocalDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function describe({ bytes, files }: TransferProgress): string {
  const size = bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
  return files > 1 ? `${size} in ${files} files` : size;
}
