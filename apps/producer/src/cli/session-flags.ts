import type { ApprovalPolicy, AskByDefault, NetworkAccess, SandboxMode, SessionSpec } from '@shellfleet/client';
import { ASK_BY_DEFAULT, NETWORK_ACCESSES, POLICY_NAMES, type PolicyName, SANDBOX_MODES } from '@shellfleet/protocol';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { FLAG_TEXTS } from './flag-texts.ts';
import { collectPair } from './pairs.ts';
import { mergeSpecs, parseWorkspace, readSpecFile } from './session-spec.ts';
import { parseCount, parseDuration, parseSize } from './units.ts';

export interface SessionFlags {
  image?: string;
  policy?: PolicyName;
  memory?: number;
  cpus?: number;
  pids?: number;
  user?: string;
  workspace?: NonNullable<SessionSpec['workspace']>;
  sandbox?: SandboxMode;
  sandboxNetwork?: NetworkAccess;
  allowHost?: string[];
  approval?: Extract<ApprovalPolicy, string>;
  askByDefault?: AskByDefault;
  sessionEnv?: Record<string, string>;
  startup?: string[];
  shutdown?: string[];
  idleTimeout?: number;
  label?: Record<string, string>;
  hostLabel?: Record<string, string>;
  secret?: Record<string, string>;
  redact?: NonNullable<SessionSpec['redaction']>;
  keepFormats?: boolean;
  spec?: SessionSpec;
}

const { SessionSpec: spec, LimitOptions: limits, SandboxOptions: sandbox } = FLAG_TEXTS;

/** Adds flags for the spec of a session. Secrets have no flags, because lists of processes show flags. */
export function addSessionFlags(verb: Command, env: NodeJS.ProcessEnv): Command {
  const secret = (name: string, before?: Record<string, string>) => ({ ...before, [name]: readSecret(name, env) });
  return verb
    .optionsGroup('Session, when this opens it (* may be given again):')
    .addOption(new Option('--image <name>', spec.image).env('SHELLFLEET_IMAGE'))
    .addOption(new Option('--policy <name>', spec.policy).choices(POLICY_NAMES).env('SHELLFLEET_POLICY'))
    .addOption(new Option('--memory <size>', limits.memoryBytes).argParser(parseSize).env('SHELLFLEET_MEMORY'))
    .addOption(new Option('--cpus <n>', limits.cpus).argParser(parseAmount).env('SHELLFLEET_CPUS'))
    .addOption(new Option('--pids <n>', limits.pids).argParser(parseCount).env('SHELLFLEET_PIDS'))
    .addOption(new Option('-u, --user <user>', spec.user).env('SHELLFLEET_USER'))
    .addOption(new Option('--workspace <path>', spec.workspace).argParser(parseWorkspace).env('SHELLFLEET_WORKSPACE'))
    .addOption(new Option('--sandbox <mode>', sandbox.mode).choices([...SANDBOX_MODES]).env('SHELLFLEET_SANDBOX'))
    .addOption(
      new Option('--sandbox-network <access>', sandbox.network)
        .choices([...NETWORK_ACCESSES])
        .env('SHELLFLEET_SANDBOX_NETWORK'),
    )
    .addOption(
      new Option('--allow-host <name>', `${sandbox.allowedHosts} *`)
        .argParser(collectText)
        .env('SHELLFLEET_ALLOW_HOST'),
    )
    .addOption(
      new Option('--approval <mode>', spec.approval)
        .choices(['never', 'on-failure', 'on-request', 'unless-trusted'])
        .env('SHELLFLEET_APPROVAL'),
    )
    .addOption(
      new Option('--ask-by-default <commands>', spec.askByDefault)
        .choices([...ASK_BY_DEFAULT])
        .env('SHELLFLEET_ASK_BY_DEFAULT'),
    )
    .addOption(
      new Option('--session-env <name=value>', `${spec.env} *`).argParser(collectPair).env('SHELLFLEET_SESSION_ENV'),
    )
    .addOption(
      new Option('--startup <script>', `${spec.startupCommands} *`).argParser(collectText).env('SHELLFLEET_STARTUP'),
    )
    .addOption(
      new Option('--shutdown <script>', `${spec.shutdownCommands} *`).argParser(collectText).env('SHELLFLEET_SHUTDOWN'),
    )
    .addOption(
      new Option('--idle-timeout <time>', spec.idleTimeoutMs).argParser(parseDuration).env('SHELLFLEET_IDLE_TIMEOUT'),
    )
    .addOption(new Option('--label <name=value>', `${spec.labels} *`).argParser(collectPair).env('SHELLFLEET_LABEL'))
    .addOption(
      new Option('--host-label <name=value>', `${spec.hosts} *`).argParser(collectPair).env('SHELLFLEET_HOST_LABEL'),
    )
    .addOption(new Option('--secret <name>', `${spec.secrets} *`).argParser(secret).env('SHELLFLEET_SECRET'))
    .addOption(
      new Option('--redact <type:strategy>', `${spec.redaction} *`).argParser(collectRule).env('SHELLFLEET_REDACT'),
    )
    .addOption(new Option('--keep-formats', spec.redactFormats).env('SHELLFLEET_KEEP_FORMATS'))
    .addOption(
      new Option('--spec <file>', 'JSON file with any fields of the spec; flags win')
        .argParser(readSpecFile)
        .env('SHELLFLEET_SPEC'),
    )
    .optionsGroup('Options:');
}

/** Returns the spec from the flags, or undefined if no flag is given, so that an open session of any spec is used. */
export function toSpec(flags: SessionFlags): SessionSpec | undefined {
  const { image, policy, memory, cpus, pids, user, workspace, idleTimeout } = flags;
  const { sessionEnv, startup, shutdown, label, secret, redact, spec, approval, askByDefault } = flags;
  const sandbox = withoutUndefined({
    mode: flags.sandbox,
    network: flags.sandboxNetwork,
    allowedHosts: flags.allowHost,
  });
  const limits = withoutUndefined({ memoryBytes: memory, cpus, pids });
  const given: SessionSpec = withoutUndefined({
    ...{ image, policy, user, workspace, idleTimeoutMs: idleTimeout, env: sessionEnv },
    ...{ labels: label, hosts: flags.hostLabel },
    ...{ startupCommands: startup, shutdownCommands: shutdown, secrets: secret, redaction: redact },
    ...{ approval, askByDefault },
    redactFormats: flags.keepFormats ? false : undefined,
    sandbox: Object.keys(sandbox).length === 0 ? undefined : sandbox,
    limits: Object.keys(limits).length === 0 ? undefined : limits,
  });
  if (spec === undefined && Object.keys(given).length === 0) return undefined;
  return mergeSpecs(spec, given);
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

function readSecret(name: string, env: NodeJS.ProcessEnv): string {
  const value = env[name];
  if (value !== undefined) return value;
  throw new InvalidArgumentError(
    'Name a variable of our environment that is set; its value has no place on a command line.',
  );
}

function parseAmount(text: string): number {
  if (!/^\d{1,4}(?:\.\d{1,3})?$/.test(text)) throw new InvalidArgumentError('Give a number such as 0.5 or 2.');
  return Number(text);
}

const collectText = (text: string, before: readonly string[] = []) => [...before, text];

function collectRule(text: string, before: NonNullable<SessionSpec['redaction']> = []) {
  const [type = '', strategy = '', ...more] = text.split(':');
  if (type === '' || strategy === '' || more.length > 0) {
    throw new InvalidArgumentError('Give TYPE:STRATEGY, such as email:mask.');
  }
  // The schema checks the strategies.
  return [...before, { type, strategy: strategy as 'redact' }];
}
