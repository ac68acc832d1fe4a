import { API_SETTINGS } from '@shellfleet/protocol/api-settings';
import { type Command, Option } from 'commander';
import { runApiProcess } from '../fleet-process/run-api.ts';
import { checkedBy } from './checked-by.ts';
import type { Context } from './context.ts';

export function registerServe(program: Command, { config, terminal, setExitCode }: Context): void {
  const verb = program
    .command('serve')
    .description('serve the HTTP API of a fleet in the foreground; docs/http.md has its routes');
  const options = Object.entries(API_SETTINGS).map(([variable, { flag, text, schema }]) => {
    const option = new Option(flag, text).env(variable);
    // The server checks again, but knows only the variables.
    return option.required ? option.argParser(checkedBy(schema)) : option;
  });
  for (const option of options) verb.addOption(option);
  verb.action(async (flags: Record<string, string | true | undefined>) => {
    const { redisUrl, namespace } = program.opts<{ redisUrl?: string; namespace?: string }>();
    const given = [
      ['SHELLFLEET_REDIS_URL', redisUrl],
      ['SHELLFLEET_NAMESPACE', namespace],
      ...options.map((option) => [option.envVar, flags[option.attributeName()]]),
    ];
    const set = given.filter(([, value]) => value !== undefined);
    const env = {
      ...config.env,
      ...Object.fromEntries(set.map(([name, value]) => [name, value === true ? '1' : value])),
    };
    setExitCode(await runApiProcess(env, (line) => terminal.say(line)));
  });
}
