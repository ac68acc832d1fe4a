import { checkCommand, oneShotSessionId } from '@shellfleet/client';
import type { Command } from 'commander';
import { addCommandFlags, type CommandFlags, leaveStdin, toRunOptions } from './command-flags.ts';
import type { Context } from './context.ts';
import { toScript } from './script-words.ts';
import { toSpec } from './session-flags.ts';
import { showOwnCommand } from './show-command.ts';

export function registerRun(program: Command, context: Context): void {
  const verb = program
    .command('run')
    .description('run a script in a fresh session of its own, which is closed afterwards')
    .argument('<script...>', 'one argument is a script; several are words, quoted and joined');
  addCommandFlags(verb, context.config.env).action((words: string[], flags: CommandFlags) =>
    run(context, toScript(words), flags),
  );
}

async function run(context: Context, script: string, flags: CommandFlags): Promise<void> {
  const options = toRunOptions(flags);
  // Checks the command before a session is opened.
  checkCommand(script, options);
  await context
    .withFleet(async (fleet) => {
      const session = await fleet.session(oneShotSessionId(options.idempotencyKey), toSpec(flags), { driven: true });
      try {
        await showOwnCommand(context, session, () => session.submit(script, { ...options, attachReader: true }), {
          json: flags.json === true,
          startDeadlineMs: flags.startDeadline,
        });
      } finally {
        await session.close();
      }
    })
    .finally(() => leaveStdin(flags));
}
