import { statSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { type Fleet, ShellfleetError } from '@shellfleet/client';
import type { Command } from 'commander';
import type { Context } from './context.ts';
import { existingSession } from './existing-session.ts';

export function registerCp(program: Command, context: Context): void {
  program
    .command('cp')
    .description('copy a file into a session or out of it (SESSION:/path)')
    .argument('<from>')
    .argument('<to>')
    .action((from: string, to: string) => context.withFleet((fleet) => cp(context, fleet, from, to)));
}

async function cp(context: Context, fleet: Fleet, from: string, to: string): Promise<void> {
  const source = parseRemote(from);
  const target = parseRemote(to);
  if (source !== undefined && target === undefined) {
    const local = isDirectory(to) ? join(to, posix.basename(source.path)) : to;
    const session = await existingSession(fleet, source.session);
    await session.files.download(source.path, local);
    context.terminal.say(`${from} → ${local}`);
  } else if (target !== undefined && source === undefined) {
    const path = target.path.endsWith('/') ? posix.join(target.path, basename(from)) : target.path;
    const session = await existingSession(fleet, target.session);
    await session.files.upload(from, path);
    context.terminal.say(`${from} → ${target.session}:${path}`);
  } else {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      'One of the two must be in a session (SESSION:/path), and the other on this machine. A local name with a colon is given as ./name.',
    );
  }
}

function parseRemote(text: string): { session: string; path: string } | undefined {
  const [, session, path] = /^([A-Za-z0-9._-]{1,128}):([\s\S]*)$/.exec(text) ?? [];
  return session === undefined || path === undefined ? undefined : { session, path };
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
