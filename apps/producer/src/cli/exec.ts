import { checkCommand, type Result, type Session } from '@shellfleet/client';
import { type Command, Option } from 'commander';
import { addCommandFlags, type CommandFlags, leaveStdin, toRunOptions } from './command-flags.ts';
import type { Context } from './context.ts';
import { toScript } from './script-words.ts';
import { toSpec } from './session-flags.ts';
import { showOwnCommand } from './show-command.ts';

export function registerExec(program: Command, context: Context): void {
  const verb = program
    .command('exec')
    .description('run a script in a session, which is opened on first use')
    .argument('<session>')
    .argument('<script...>', 'one argument is a script; several are words, quoted and joined');
  addCommandFlags(verb, context.config.env)
    .addOption(new Option('-d, --detach', 'print the id of the command and leave').env('SHELLFLEET_DETACH'))
    .action((session: string, words: string[], flags: CommandFlags & { detach?: boolean }) =>
      exec(context, session, toScript(words), flags),
    );
}

async function exec(
  context: Context,
  sessionId: string,
  script: string,
  flags: CommandFlags & { detach?: boolean },
): Promise<void> {
  const options = toRunOptions(flags);
  // Validate before a session is opened.
  checkCommand(script, options);
  await context
    .withFleet(async (fleet) => {
      const session = await fleet.session(sessionId, toSpec(flags));
      const submit = () => session.submit(script, { ...options, attachReader: flags.detach !== true });
      const json = flags.json === true;
      if (!flags.detach) {
        let result: Result | undefined;
        try {
          result = await showOwnCommand(context, session, submit, { json, startDeadlineMs: flags.startDeadline });
        } finally {
          if (session.isNew && !wasRefused(result)) await closeUnlessOpened(session, result);
        }
        return;
      }
      const command = await submit();
      // After the whole stdin is sent, the command no longer needs this process.
      await command.stdinSent();
      if (json) return context.terminal.json({ commandId: command.id, sessionId: session.id });
      return context.terminal.line(command.id);
    })
    .finally(() => leaveStdin(flags));
}

/**
 * Returns true if a person or a rule refused the command. The session then stays open, because a new session with its
 * id might need no approval.
 */
function wasRefused(result: Result | undefined): boolean {
  return result?.outcome === 'denial' || (result?.outcome === 'error' && result.error.code === 'APPROVAL_EXPIRED');
}

/**
 * Closes a session that no host could open, for example with a misspelt image or a startup command that fails, so that
 * later commands do not fail.
 */
async function closeUnlessOpened(session: Session, result: Result | undefined): Promise<void> {
  const info = await session.info().catch(() => undefined);
  // A startup command that fails has had a shell, in which no command has run.
  const neverOpened = info?.epoch === 0 || isStartFailed(result);
  const isUnused = info?.queuedCommands === 0 && info.runningCommandId === undefined;
  if (neverOpened && isUnused) await session.close().catch(() => {});
}

function isStartFailed(result: Result | undefined): boolean {
  return result?.outcome === 'error' && result.error.code === 'SESSION_START_FAILED';
}
