import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type AuditChainName, toAuditChain } from '@shellfleet/protocol';
import { createSealer } from '../seal.ts';

// Marks tell which records hosts have removed from the audit in Redis: `<value> <code>`. Without a seal key nobody can
// make one, so removed records without a mark are a sign of tampering.

/** What was removed of one chain. */
export interface RemovedRecords {
  /** Number of the last removed record. All records before it are removed too. */
  through: number;
  /** Number of those that were removed before their time, because the stream had reached its size. */
  early: number;
}

const STREAM = 'stream';

/** Makes and checks marks with the seal keys of a fleet. The first key makes them. */
export class RemovalMarks {
  readonly #keys: readonly KeyObject[];

  constructor(sealKeys: readonly string[], namespace: string) {
    this.#keys = sealKeys.map((key) => createSecretKey(createSealer([key]).deriveKey(['audit removal', namespace])));
  }

  /** Returns the mark of a chain. */
  ofChain(chain: AuditChainName, { through, early }: RemovedRecords): string {
    return this.#make(toAuditChain(chain), `${through} ${early}`);
  }

  /** Returns the mark of the stream: records from before this time (ms) are removed for their age. */
  ofStream(before: number): string {
    return this.#make(STREAM, String(before));
  }

  /** Returns what was removed of a chain according to its mark. A mark that no key has made counts as none. */
  readChain(chain: AuditChainName, mark: string): RemovedRecords {
    const [through = 0, early = 0] = this.#read(toAuditChain(chain), mark)?.split(' ').map(Number) ?? [];
    return { through, early };
  }

  /** Returns the time (ms) before which records are removed for their age. */
  readStream(mark: string): number {
    return Number(this.#read(STREAM, mark) ?? 0);
  }

  #make(about: string, value: string): string {
    const [key] = this.#keys;
    if (key === undefined) throw new Error('No seal key');
    return `${value} ${codeOf(about, value, key)}`;
  }

  #read(about: string, mark: string): string | undefined {
    const end = mark.lastIndexOf(' ');
    const [value, code] = [mark.slice(0, Math.max(0, end)), Buffer.from(mark.slice(end + 1))];
    const isMade = (key: KeyObject) => {
      const own = Buffer.from(codeOf(about, value, key));
      return own.byteLength === code.byteLength && timingSafeEqual(own, code);
    };
    return end > 0 && this.#keys.some(isMade) ? value : undefined;
  }
}

const codeOf = (about: string, value: string, key: KeyObject) =>
  createHmac('sha256', key)
    .update(JSON.stringify([about, value]))
    .digest('base64url');
