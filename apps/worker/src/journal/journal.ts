import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Entry } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import { FINGERPRINT_CHARS, Fingerprints, fingerprintOf, parseFingerprint } from './fingerprints.ts';

// The ids that this host began, on its disk. They outlive the worker, the sandbox and all losses of Redis.
//
// JOURNAL-1. An id is written before its first byte reaches a shell or a tool, with one write call and no fsync: the
//     page cache outlives this process. A host that loses its power loses its sandboxes as well.
// JOURNAL-2. An id is known for the retention. Then its segment is dropped. Beyond `MOST_IDS` ids, the oldest segments
//     are dropped earlier.
// JOURNAL-3. A file is written by one process only; the next process begins another file. An incomplete last line is
//     ignored.
// JOURNAL-4. A disk that takes nothing does not stop the host: the id is then known to this process alone.

/** Most ids in the journal. So many need 128 MiB of memory and about 500 MiB of disk. */
const MOST_IDS = 4_194_304;
const SEGMENTS = 24;
const LINE_BREAK = 10;

/** An entry of a session, or a call of a tool, that began. No generation uses its id again. */
export interface BegunId {
  namespace: string;
  tenant: string;
  /** Id of the session, or name of the tool. */
  of: string;
  /** Id of the entry, or of the call. */
  id: string;
}

export interface Journal {
  knows(begun: BegunId): boolean;
  /** Records that an id began. `generation` is for people who read the file: the session's, or the boot of the host. */
  record(begun: BegunId, generation: string): void;
  close(): void;
}

export interface JournalOptions {
  directory: string;
  retentionMs: number;
  /** Called once for a series of failures. */
  onWriteFailed(error: unknown): void;
  mostIds?: number;
}

interface Segment {
  /** Start of the segment, ms. */
  from: number;
  path: string;
  known: Fingerprints;
  /** Descriptor of the segment that this process writes. */
  file?: number;
  /** True when the last write failed, so the file may end inside a line. */
  broken?: boolean;
}

/** Opens the journal and reads the ids of earlier processes of this host. */
export function openJournal({ directory, retentionMs, onWriteFailed, mostIds = MOST_IDS }: JournalOptions): Journal {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const spanMs = retentionMs / SEGMENTS;
  const segments = readSegments(directory);
  let current: Segment | undefined;

  const close = () => {
    if (current?.file !== undefined) closeSync(current.file);
    current = undefined;
  };
  const dropOld = () => {
    let ids = segments.reduce((sum, { known }) => sum + known.size, 0);
    // `from + spanMs` is the time of a segment's last id, so all of a dropped segment is older than the retention.
    while (segments[0] !== undefined && segments[0] !== current) {
      if (segments[0].from + spanMs + retentionMs > Date.now() && ids <= mostIds) return;
      ids -= segments[0].known.size;
      rmSync(segments[0].path, { force: true });
      segments.shift();
    }
  };
  const begin = (): Segment => {
    close();
    dropOld();
    // Two starts within a millisecond, or a clock that was set back, must not lead into an older file.
    const from = Math.max(Date.now(), (segments.at(-1)?.from ?? 0) + 1);
    const segment: Segment = { from, path: join(directory, `${from}.begun`), known: new Fingerprints() };
    segments.push(segment);
    try {
      segment.file = openSync(segment.path, 'ax', 0o600);
    } catch (error) {
      onWriteFailed(error);
    }
    current = segment;
    return segment;
  };
  const isFull = ({ from, known }: Segment) => Date.now() >= from + spanMs || known.size * SEGMENTS >= mostIds;

  // An id is usually looked up and then recorded, so the last fingerprint is kept.
  let last = { key: '', hex: '' };
  const hexOf = (key: string) => {
    if (key !== last.key) last = { key, hex: fingerprintOf(key) };
    return last.hex;
  };

  dropOld();
  return {
    knows(begun) {
      const print = parseFingerprint(hexOf(toKey(begun)));
      return segments.some(({ known }) => known.has(print));
    },
    record(begun, generation) {
      const segment = current === undefined || isFull(current) ? begin() : current;
      const key = toKey(begun);
      const hex = hexOf(key);
      segment.known.add(parseFingerprint(hex));
      if (segment.file === undefined) return;
      const line = Buffer.from(`${segment.broken === true ? '\n' : ''}${hex} ${key} ${generation}\n`);
      try {
        if (writeSync(segment.file, line) < line.byteLength) throw new Error('The disk took a part of a line.');
        segment.broken = false;
      } catch (error) {
        if (segment.broken !== true) onWriteFailed(error);
        segment.broken = true;
      }
    },
    close,
  };
}

function readSegments(directory: string): Segment[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const [, from] = /^(\d{1,15})\.begun$/.exec(name) ?? [];
      return from === undefined ? [] : [{ from: Number(from), path: join(directory, name), known: new Fingerprints() }];
    })
    .sort((a, b) => a.from - b.from)
    .map((segment) => {
      readLines(segment);
      return segment;
    });
}

/** Reads only the fingerprint of each line, because a worker that adopts shells has little time. */
function readLines({ path, known }: Segment): void {
  const bytes = readFileSync(path);
  for (let at = 0; ; ) {
    const end = bytes.indexOf(LINE_BREAK, at);
    if (end === -1) return;
    if (end - at > FINGERPRINT_CHARS) known.add(parseFingerprint(bytes.toString('latin1', at, at + FINGERPRINT_CHARS)));
    at = end + 1;
  }
}

/** Joins the parts with spaces: ids and names of tools contain none. */
function toKey({ namespace, tenant, of, id }: BegunId): string {
  return `${namespace} ${tenant} ${of} ${id}`;
}

/** Returns the id of an entry in the host's journal. A second attempt has a separate id. */
export function toBegunId(
  { id, first }: Pick<Entry, 'id' | 'first'>,
  { namespace, tenant, session }: SessionKeys,
): BegunId {
  return { namespace, tenant, of: session, id: first === undefined ? id : `${id}.2` };
}
