import { ASK_BY_DEFAULT } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { type CheckFlags, checkPolicy } from './policy-check.ts';
import { type ReplayFlags, replayPolicy } from './policy-replay.ts';
import { parseDuration } from './units.ts';

export function registerPolicy(program: Command, context: Context): void {
  const policy = program.command('policy').description('rules about commands');
  policy
    .command('check')
    .description(
      'say what rules decide about a script; without a script: whether the files are valid, and their examples hold',
    )
    .argument('[script...]')
    .addOption(rulesFileFlag())
    .addOption(
      new Option('--approval <policy>', 'the approval policy of the session')
        .choices(['never', 'on-failure', 'on-request', 'unless-trusted'])
        .env('SHELLFLEET_POLICY_APPROVAL'),
    )
    .addOption(
      new Option('--ask-by-default <commands>', 'what that policy asks about when no rule decides')
        .choices([...ASK_BY_DEFAULT])
        .env('SHELLFLEET_POLICY_ASK_BY_DEFAULT'),
    )
    .addOption(new Option('--escalate', 'the command asks to leave its sandbox').env('SHELLFLEET_POLICY_ESCALATE'))
    .addOption(new Option('--unsandboxed', 'the session has no sandbox').env('SHELLFLEET_POLICY_UNSANDBOXED'))
    .addOption(jsonFlag())
    .action((words: string[], flags: CheckFlags) => checkPolicy(context, words, flags));
  policy
    .command('replay')
    .description('say what rules would have done with the commands that hosts of this machine ran')
    .addOption(
      new Option('--since <time>', 'how far back: 30m, 24h')
        .argParser(parseDuration)
        .default(86_400_000, '24h')
        .env('SHELLFLEET_POLICY_SINCE'),
    )
    .addOption(rulesFileFlag())
    .addOption(
      new Option('--audit <folder>', "audit of one host; default: of all hosts below this user's state folder").env(
        'SHELLFLEET_POLICY_AUDIT',
      ),
    )
    .addOption(jsonFlag())
    .action((flags: ReplayFlags) => replayPolicy(context, flags));
}

function rulesFileFlag(): Option {
  return new Option('--file <file>', "file of rules, as an operator's; may be given again")
    .argParser((file: string, before: string[] = []) => [...before, file])
    .env('SHELLFLEET_POLICY_FILE');
}
