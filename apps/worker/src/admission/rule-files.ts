import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { compileOperatorRules, type OperatorRules } from '@shellfleet/policy';
import type { Logger } from 'pino';
import { ConfigError } from '../config/config.ts';

// The files of rules that the operator of this host lists.
//
// RULE-FILES-1. Rules hold only as a whole: all files are valid, or nothing changes. A worker whose files are not valid does not start.
// RULE-FILES-2. While a changed file is not valid, the rules before it hold, the log has the reason, and so has `hosts ls`.

/** Also where a file is reached by a link that changes, as a folder that is mounted into a container is. */
const POLL_MS = 1_000;

export class RuleFiles {
  readonly #paths: readonly string[];
  readonly #logger: Logger;
  readonly #listeners = new Set<() => void>();
  readonly #look = () => this.reload();
  #rules: OperatorRules;
  #problem: string | undefined;
  #readAt = new Date();

  /** Throws ConfigError. */
  constructor(paths: readonly string[], logger: Logger) {
    this.#paths = paths;
    this.#logger = logger;
    const read = tryRead(paths);
    if (read instanceof Error) throw new ConfigError(`SHELLFLEET_CONFIG: rules: ${read.message}`);
    this.#rules = read;
  }

  /** Those that hold now. */
  get rules(): OperatorRules {
    return this.#rules;
  }

  /** What the operator should mend, one sentence each. */
  get warnings(): string[] {
    return this.#problem === undefined ? [] : [this.#problem];
  }

  /** Calls `onChange` after each reload that changed the rules. */
  watch(onChange: () => void): void {
    this.#listeners.add(onChange);
    for (const path of this.#paths) watchFile(path, { interval: POLL_MS, persistent: false }, this.#look);
  }

  close(): void {
    for (const path of this.#paths) unwatchFile(path, this.#look);
  }

  reload(): void {
    const read = tryRead(this.#paths);
    if (read instanceof Error) {
      this.#problem = `Rules were changed and are not valid, so those read at ${this.#readAt.toISOString()} hold: ${read.message}`;
      this.#logger.error({ problem: read.message }, 'rules.reload-failed');
      return;
    }
    const isChanged = read.digest !== this.#rules.digest;
    if (!isChanged && this.#problem === undefined) return;
    this.#problem = undefined;
    this.#readAt = new Date();
    this.#rules = read;
    this.#logger.info({ files: this.#paths, digest: read.digest }, 'rules.reloaded');
    if (isChanged) for (const listener of this.#listeners) listener();
  }
}

function tryRead(paths: readonly string[]): OperatorRules | Error {
  try {
    return compileOperatorRules(paths.map((path) => ({ name: path, text: readFileSync(path, 'utf8') })));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
