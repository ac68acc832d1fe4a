import { readFileSync } from 'node:fs';

/** What the environment says about the command line itself. Flags read their own variables; where the fleet is, the client reads. */
export interface Config {
  version: string;
  /** SHELLFLEET_DEBUG: show stacks */
  debug: boolean;
  /** A person looks at stderr, and no CI: lines that change in place are welcome. */
  progress: boolean;
  /** NO_COLOR unset and stderr a terminal */
  color: boolean;
  env: NodeJS.ProcessEnv;
}

export function readConfig(env: NodeJS.ProcessEnv): Config {
  const terminal = process.stderr.isTTY === true;
  return {
    version: readVersion(),
    debug: isSet(env.SHELLFLEET_DEBUG),
    progress: terminal && !isSet(env.CI) && env.TERM !== 'dumb',
    color: terminal && !env.NO_COLOR && !isSet(env.CI),
    env,
  };
}

const isSet = (value: string | undefined) => value !== undefined && value !== '' && value !== '0' && value !== 'false';

function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return String((JSON.parse(text) as { version?: unknown }).version ?? '0.0.0');
}
