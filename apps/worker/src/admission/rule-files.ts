import { readFileSync } from 'node:fs';
import { compileOperatorRules, type OperatorRules, type RulesFile } from '@shellfleet/policy';
import type { PrefixRule } from '@shellfleet/protocol';
import { ConfigError } from '../config/config.ts';
import type { Logger } from '../log/logger.ts';

// The rule files that the operator of this host lists, and the rules of the fleet's configuration.
// RULE-FILES-1. Rules hold only as a whole: unless all are valid, nothing changes, and with invalid files a worker does
//     not start.
// RULE-FILES-2. While a changed file is invalid, the previous rules hold; the log and `hosts ls` show the reason.

/** Interval of reads. Watching a file would miss changes of a link to it, as in a mounted directory of a container. */
const POLL_MS = 1_000;

export class RuleFiles {
  readonly #paths: readonly string[];
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  /** The rules of the fleet's configuration, as one more file. Undefined until they are known. */
  #fleet: RulesFile[] | undefined;
  #rules: OperatorRules;
  #problem: string | undefined;
  /** Error message for which the newest files were refused. It is logged once. */
  #refused: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #readAt = new Date();

  /** Reads the files. Throws ConfigError. */
  constructor(paths: readonly string[], logger: Logger) {
    this.#paths = paths;
    this.#logger = logger;
    const read = tryRead(paths, []);
    if (read instanceof Error) throw new ConfigError(`SHELLFLEET_CONFIG: rules: ${read.message}`);
    this.#rules = read;
  }

  get rules(): OperatorRules {
    return this.#rules;
  }

  /** Whether the rules of the fleet's configuration are known. */
  get areKnown(): boolean {
    return this.#fleet !== undefined;
  }

  /** Warnings for the operator, one sentence each. */
  get warnings(): string[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  /** Calls `onChange` after each reload that changed the rules, and when those of the fleet become known. */
  watch(onChange: () => void): void {
    this.#listeners.add(onChange);
    if (this.#paths.length > 0) this.#timer ??= setInterval(() => this.reload(), POLL_MS).unref();
  }

  /** Replaces the rules of the fleet's configuration. Throws, and changes nothing, unless all rules are valid. */
  useFleetRules(rules: readonly PrefixRule[]): void {
    const fleet = rules.length === 0 ? [] : [{ name: "the fleet's configuration", text: JSON.stringify({ rules }) }];
    const read = tryRead(this.#paths, fleet);
    if (read instanceof Error) throw read;
    const areNew = !this.areKnown;
    this.#fleet = fleet;
    this.#use(read);
    // What was refused until now may start, even if the fleet has no rules.
    if (areNew) this.#notify();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  reload(): void {
    const read = tryRead(this.#paths, this.#fleet ?? []);
    if (read instanceof Error) {
      if (read.message === this.#refused) return;
      this.#refused = read.message;
      this.#problem = `Rules were changed and are not valid, so those read at ${this.#readAt.toISOString()} hold: ${read.message}`;
      this.#logger.error({ problem: read.message }, 'rules.reload-failed');
      return;
    }
    this.#use(read);
  }

  #use(read: OperatorRules): void {
    const isChanged = read.digest !== this.#rules.digest;
    if (!isChanged && this.#problem === undefined) return;
    this.#problem = undefined;
    this.#refused = undefined;
    this.#readAt = new Date();
    this.#rules = read;
    this.#logger.info({ files: this.#paths, digest: read.digest }, 'rules.reloaded');
    if (isChanged) this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function tryRead(paths: readonly string[], more: readonly RulesFile[]): OperatorRules | Error {
  try {
    const files = paths.map((path) => ({ name: path, text: readFileSync(path, 'utf8') }));
    return compileOperatorRules([...files, ...more]);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
