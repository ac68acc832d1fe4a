import { ASK_BY_DEFAULT } from '@shellfleet/protocol';
import { type Command, Option } from 'commander';
import { jsonFlag } from './command-flags.ts';
import type { Context } from './context.ts';
import { type CheckFlags, checkRules } from './rules-check.ts';
import { type ReplayFlags, replayRules } from './rules-replay.ts';
import { parseDuration } from './units.ts';

export function registerRules(program: Command, context: Context): void {
  const rules = program.command('rules').description('rules about commands');
  rules
    .command('check')
    .description(
      'say what rules decide about a script; without a script: whether the files are valid, and their examples hold',
    )
    .argument('[script...]')
    .addOption(rulesFileFlag())
    .addOption(
      new Option('--approval <mode>', 'which commands wait for a person')
        .choices(['never', 'on-failure', 'on-request', 'unless-trusted'])
        .env('SHELLFLEET_RULES_APPROVAL'),
    )
    .addOption(
      new Option('--ask-by-default <commands>', 'what that mode asks about when no rule decides')
        .choices([...ASK_BY_DEFAULT])
        .env('SHELLFLEET_RULES_ASK_BY_DEFAULT'),
    )
    .addOption(new Option('--escalate', 'the command asks to leave its sandbox').env('SHELLFLEET_RULES_ESCALATE'))
    .addOption(new Option('--unsandboxed', 'the session has no sandbox').env('SHELLFLEET_RULES_UNSANDBOXED'))
    .addOption(jsonFlag())
    .action((words: string[], flags: CheckFlags) => checkRules(context, words, flags));
  rules
    .command('replay')
    .description('say what rules would have done with the commands that hosts of this machine ran')
    .addOption(
      new Option('--since <time>', 'how far back: 30m, 24h')
        .argParser(parseDuration)
        .default(86_400_000, '24h')
        .env('SHELLFLEET_RULES_SINCE'),
    )
    .addOption(rulesFileFlag())
    .addOption(
      new Option(
        '--audit <directory>',
        "audit of one host; default: of all hosts below this user's state directory",
      ).env('SHELLFLEET_RULES_AUDIT'),
    )
    .addOption(jsonFlag())
    .action((flags: ReplayFlags) => replayRules(context, flags));
}

function rulesFileFlag(): Option {
  return new Option('--file <file>', "file of rules, as an operator's; may be given again")
    .argParser((file: string, before: string[] = []) => [...before, file])
    .env('SHELLFLEET_RULES_FILE');
}
