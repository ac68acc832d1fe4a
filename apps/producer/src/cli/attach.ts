import { type Session, type SessionSpec, type Terminal as SessionTerminal, ShellfleetError } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import type { Context } from './context.ts';
import { DEFAULT_DETACH_KEYS, DetachKeys, parseDetachKeys } from './detach-keys.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { EXIT_DENIED, EXIT_OWN_FAILURE, exitCodeOfSignal, exitCodeOfSignalNumber } from './exit-codes.ts';
import { addSessionFlags, type SessionFlags, toSpec } from './session-flags.ts';
import { TerminalModes } from './terminal-modes.ts';
import { watchWaiting } from './watch-waiting.ts';

export function registerAttach(program: Command, context: Context): void {
  const verb = program
    .command('attach')
    .description('a terminal in the sandbox of a session, which is opened on first use')
    .argument('<session>');
  addSessionFlags(verb, context.config.env)
    .addOption(
      new Option('--detach-keys <keys>', 'keys that leave, such as ctrl-p,ctrl-q; empty for none')
        .env('SHELLFLEET_DETACH_KEYS')
        .default(parseDetachKeys(DEFAULT_DETACH_KEYS), DEFAULT_DETACH_KEYS)
        .argParser(parseDetachKeys),
    )
    .action((session: string, { detachKeys, ...flags }: SessionFlags & { detachKeys: Buffer }) =>
      attach(context, session, toSpec(flags), detachKeys),
    );
}

async function attach(context: Context, id: string, spec: SessionSpec | undefined, detachKeys: Buffer): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    throw new ShellfleetError(
      'COMMAND_INVALID',
      `\`attach\` needs a terminal, and stdin or stdout is not one. For a script use \`shellfleet exec ${id} -- SCRIPT\`.`,
    );
  }
  await context.withFleet(async (fleet) => {
    const session = await fleet.session(id, spec);
    const opened = await open(context, session);
    const left = await beAt(opened, context, new DetachKeys(detachKeys));
    context.setExitCode(left.exitCode);
    if (left.words !== undefined) context.terminal.say(left.words);
  });
}

async function open(context: Context, session: Session): Promise<SessionTerminal> {
  using _watch = watchWaiting(context.terminal, session);
  const { TERM = '' } = context.config.env;
  return session.attach({ ...localSize(), ...(/^[A-Za-z0-9._+-]{1,64}$/.test(TERM) ? { term: TERM } : {}) });
}

interface Left {
  exitCode: number;
  words?: string;
}

/** Connects the local terminal to the session's until its end or a detach, and then restores the local terminal. */
async function beAt(terminal: SessionTerminal, context: Context, keys: DetachKeys): Promise<Left> {
  const left = Promise.withResolvers<Left>();
  const modes = new TerminalModes();
  let ended = false;
  let isLeaving = false;
  const leaveBySignal = (signal: NodeJS.Signals) => left.resolve({ exitCode: exitCodeOfSignal(signal) });
  const onResize = () => terminal.resize(localSize().rows, localSize().cols);
  // Stdin is not read while a write is in flight. When a write fails, `ended` rejects with the reason.
  const passOn = (bytes: Buffer) => {
    process.stdin.pause();
    const written = terminal.write(bytes).catch(() => {});
    void written.then(() => (isLeaving ? undefined : process.stdin.resume()));
  };
  const onTyped = (typed: Buffer) => {
    const { pass, detached } = keys.push(typed);
    if (pass.length > 0) passOn(pass);
    if (detached) left.resolve({ exitCode: 0, words: 'Left; the terminal is closed, and the session goes on.' });
  };
  const showing = (async () => {
    for await (const bytes of terminal.output()) {
      modes.push(bytes);
      await context.terminal.write('stdout', bytes);
    }
  })();
  terminal.ended
    .then(async (end) => {
      await showing;
      ended = end.reason === 'exited';
      left.resolve(describeEnd(end));
    })
    .catch(left.reject);
  const stdin = process.stdin;
  for (const signal of ENDING_SIGNALS) process.on(signal, leaveBySignal);
  process.stdout.on('resize', onResize);
  context.terminal.readerGone.addEventListener('abort', () => leaveBySignal('SIGHUP'));
  stdin
    .on('data', onTyped)
    .on('end', () => leaveBySignal('SIGHUP'))
    .on('error', () => leaveBySignal('SIGHUP'));
  try {
    stdin.setRawMode(true);
    stdin.resume();
    return await left.promise;
  } finally {
    isLeaving = true;
    stdin.off('data', onTyped).pause();
    process.stdout.off('resize', onResize);
    stdin.setRawMode(false);
    // A shell restores the terminal itself when it ends.
    if (!ended) process.stdout.write(`${modes.undo()}\r\n`);
    await terminal.close();
    for (const signal of ENDING_SIGNALS) process.off(signal, leaveBySignal);
  }
}

function describeEnd({ reason, exitCode, signal }: Awaited<SessionTerminal['ended']>): Left {
  switch (reason) {
    case 'exited':
      return { exitCode: exitCode ?? EXIT_OWN_FAILURE };
    case 'signalled':
      return { exitCode: exitCodeOfSignalNumber(signal ?? 0), words: `The shell was ended by signal ${signal}.` };
    case 'blocked':
      return {
        exitCode: EXIT_DENIED,
        words: 'The terminal was closed: a rule of the session blocks what it would have shown.',
      };
    case 'hung-up':
      return {
        exitCode: exitCodeOfSignal('SIGHUP'),
        words: 'The terminal was hung up: its session ended, or we were not heard of for too long.',
      };
  }
}

/** Returns the size of the terminal, or 24 by 80 if it is unknown. */
function localSize(): { rows: number; cols: number } {
  return { rows: process.stdout.rows || 24, cols: process.stdout.columns || 80 };
}
