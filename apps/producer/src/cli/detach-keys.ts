import { InvalidArgumentError } from 'commander';

export const DEFAULT_DETACH_KEYS = 'ctrl-p,ctrl-q';

/** Parses `ctrl-p,ctrl-q`: letters, or `ctrl-` with one of a to z and @ [ \ ] ^ _. Empty text means no keys. */
export function parseDetachKeys(text: string): Buffer {
  if (text === '') return Buffer.alloc(0);
  return Buffer.from(text.split(',').map(toByte));
}

function toByte(key: string): number {
  const [, controlled] = /^ctrl-([a-z@[\\\]^_])$/.exec(key) ?? [];
  if (controlled !== undefined) return controlled.toUpperCase().charCodeAt(0) & 0x1f;
  if (/^[\x21-\x7e]$/.test(key)) return key.charCodeAt(0);
  throw new InvalidArgumentError(
    'Give keys such as ctrl-p,ctrl-q: single characters, or ctrl- and one of a-z @ [ \\ ] ^ _.',
  );
}

/** Finds the detach keys in the input. A key that may begin the detach keys is held back until the next key. */
export class DetachKeys {
  readonly #keys: Buffer;
  #matched = 0;

  constructor(keys: Buffer) {
    this.#keys = keys;
  }

  /** Returns the input for the terminal, and whether the detach keys are complete. Drops the input after them. */
  push(typed: Buffer): { pass: Buffer; detached: boolean } {
    if (this.#keys.length === 0) return { pass: typed, detached: false };
    const pass: number[] = [];
    for (const byte of typed) {
      if (byte !== this.#keys[this.#matched]) {
        pass.push(...this.#keys.subarray(0, this.#matched));
        this.#matched = 0;
      }
      if (byte === this.#keys[this.#matched]) this.#matched += 1;
      else pass.push(byte);
      if (this.#matched === this.#keys.length) return { pass: Buffer.from(pass), detached: true };
    }
    return { pass: Buffer.from(pass), detached: false };
  }
}
