import type { SessionSpec } from '@shellfleet/client';
import { POLICY_NAMES, type PolicyName } from '@shellfleet/protocol';
import { type Command, InvalidArgumentError, Option } from 'commander';

export interface SessionFlags {
  image?: string;
  policy?: string;
  secret?: Record<string, string>;
  redact?: NonNullable<SessionSpec['redaction']>;
}

/**
 * Flags for the spec of a session that the verb opens. Values of secrets come from the environment, because command lines are visible in every
 * list of processes.
 */
export function addSessionFlags(verb: Command, env: NodeJS.ProcessEnv): Command {
  return verb
    .addOption(new Option('--image <name>', 'of the session, when this opens it').env('SHELLFLEET_IMAGE'))
    .addOption(
      new Option('--policy <name>', `of the session, when this opens it: ${POLICY_NAMES.join(', ')}`).env(
        'SHELLFLEET_POLICY',
      ),
    )
    .addOption(
      new Option(
        '--secret <name>',
        'variable of ours that the session gets and never shows, when this opens it; again for more',
      )
        .env('SHELLFLEET_SECRET')
        .argParser((name, before?: Record<string, string>) => ({ ...before, [name]: readSecret(name, env) })),
    )
    .addOption(
      new Option(
        '--redact <type:strategy>',
        'what the session never shows, when this opens it: email:mask; again for more',
      )
        .env('SHELLFLEET_REDACT')
        .argParser(collectRule),
    );
}

/** Undefined when no flag concerns the session: then an open session of any spec is used. */
export function toSpec({ image, policy, secret, redact }: SessionFlags): SessionSpec | undefined {
  if (Object.values({ image, policy, secret, redact }).every((flag) => flag === undefined)) return undefined;
  return {
    ...(image === undefined ? {} : { image }),
    // The schema checks the names.
    ...(policy === undefined ? {} : { policy: policy as PolicyName }),
    ...(secret === undefined ? {} : { secrets: secret }),
    ...(redact === undefined ? {} : { redaction: redact }),
  };
}

function readSecret(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value !== undefined) return value;
  throw new InvalidArgumentError(
    'Name a variable of our environment that is set; its value has no place on a command line.',
  );
}

function collectRule(text: string, before: NonNullable<SessionSpec['redaction']> = []) {
  const [type = '', strategy = '', ...more] = text.split(':');
  if (type === '' || strategy === '' || more.length > 0) {
    throw new InvalidArgumentError('Give TYPE:STRATEGY, such as email:mask.');
  }
  // The schema checks the strategies.
  return [...before, { type, strategy: strategy as 'redact' }];
}
