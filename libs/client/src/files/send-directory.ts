import { posix } from 'node:path';
import type { ContentDigest, WrittenEntry } from '@shellfleet/protocol';
import { cut, sendParts, toParts } from './file-parts.ts';
import { type DoneStep, type FileSteps, SameSandbox } from './file-steps.ts';
import type { Progress } from './progress.ts';

/** Files of more bytes are sent in steps of their own. */
const SMALL_BYTES = 262_144;
const BUNDLE_BYTES = 393_216;
const BUNDLE_ENTRIES = 1_000;
const BUNDLES_AHEAD = 4;
/** Permissions with which the owner can write into a directory. */
const OWNER = 0o700;

/** An item of a directory that is sent to a sandbox. `name` is relative to the directory, which itself is `.`. */
export type SentItem = { name: string; mode: number } & (
  | { type: 'directory' }
  | { type: 'symlink'; target: string }
  | {
      type: 'file';
      size: number;
      /** Reads the whole file, which is small. */
      read(): Promise<Buffer>;
      pieces(): AsyncIterable<Uint8Array>;
      /** Digests the whole file, if it can be read twice. */
      whole?: () => Promise<ContentDigest>;
    }
);

/** Writes items to a directory of the sandbox, each directory before its contents. `nextId` makes ULIDs. */
export async function sendDirectory(
  steps: FileSteps,
  path: string,
  items: AsyncIterable<SentItem>,
  nextId: () => string,
  progress: Progress,
  signal: AbortSignal | undefined,
): Promise<void> {
  const bundles = new Bundles(steps, path);
  /** Directories whose own mode would prevent writing into them. Their modes are set at the end. */
  const closed: WrittenEntry[] = [];
  const { sandbox } = bundles;
  for await (const item of items) {
    signal?.throwIfAborted();
    const { name, mode } = item;
    if (item.type === 'directory') {
      if ((mode & OWNER) !== OWNER) closed.push({ kind: 'mode', name, mode });
      await bundles.add({ kind: 'directory', name, mode: mode | OWNER }, 0);
    } else if (item.type === 'symlink') {
      const data = Buffer.from(item.target);
      await bundles.add({ kind: 'symlink', name, mode, data: data.toString('base64') }, data.byteLength);
    } else {
      const small = item.size <= SMALL_BYTES ? await item.read() : undefined;
      if (small !== undefined && small.byteLength <= SMALL_BYTES) {
        await bundles.add({ kind: 'file', name, mode, data: small.toString('base64') }, small.byteLength);
        progress.add(small.byteLength, 1);
      } else {
        const parts = small === undefined ? toParts(item.pieces()) : cut(small);
        const file = { path: posix.join(path, name), transfer: nextId(), mode, whole: item.whole };
        const onSent = (bytes: number) => progress.add(bytes, 0);
        await Promise.all(await sendParts(steps, file, parts, { signal, onSent, sandbox }));
        progress.add(0, 1);
      }
    }
  }
  await bundles.settle();
  // Sets the modes of the deepest directories first, because a closed directory cannot be passed.
  for (const entry of closed.reverse()) await bundles.add(entry, 0);
  await bundles.settle();
}

/** Sends items in groups, several groups at a time. */
class Bundles {
  readonly sandbox: SameSandbox;
  readonly #steps: FileSteps;
  readonly #path: string;
  readonly #underWay = new Set<Promise<unknown>>();
  #entries: WrittenEntry[] = [];
  #bytes = 0;

  constructor(steps: FileSteps, path: string) {
    this.#steps = steps;
    this.#path = path;
    this.sandbox = new SameSandbox(path);
  }

  async add(entry: WrittenEntry, bytes: number): Promise<void> {
    if (this.#bytes + bytes > BUNDLE_BYTES) await this.#send();
    this.#entries.push(entry);
    this.#bytes += bytes;
    if (this.#entries.length >= BUNDLE_ENTRIES) await this.#send();
  }

  /** Resolves when everything that was added is in the sandbox. */
  async settle(): Promise<void> {
    await this.#send();
    await Promise.all(this.#underWay);
  }

  async #send(): Promise<void> {
    const entries = this.#entries;
    if (entries.length === 0) return;
    this.#entries = [];
    this.#bytes = 0;
    const sent = await this.#steps.send({ name: 'unpack', path: this.#path, entries });
    const done: Promise<DoneStep> = sent.reply().then((step) => this.sandbox.check(step));
    // A failed group stays in the set, so that settle() rejects with its error.
    const underWay: Promise<unknown> = done.then(() => this.#underWay.delete(underWay));
    underWay.catch(() => {});
    this.#underWay.add(underWay);
    if (this.#underWay.size >= BUNDLES_AHEAD) await Promise.race(this.#underWay);
  }
}
