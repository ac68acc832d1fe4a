import { open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repeat } from '@shellfleet/concurrency';
import { ATTRIBUTES, type AuditHead, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import type { SinkTarget } from '../config/sink-target.ts';
import type { Logger } from '../log/logger.ts';
import { deliver } from '../sink/deliver.ts';
import { SinkHealth, type SinkState } from '../sink/sink-health.ts';

// COPY-1. Records are read from the files of the chains, so nothing waits for the sink, and nothing is kept in memory
//     for it.
// COPY-2. The place of each chain up to which the sink has the records is stored after their delivery. So no record is
//     missing at the sink after a failure, a restart or a crash of the worker, and some may arrive twice.
// COPY-3. Only records that were removed for their age before the sink took them are missing. They are counted.

const EVERY_MS = 1_000;
const BATCH_BYTES = 256 * 1024;
/** More than the longest record. */
const MOST_BYTES = 4 * 1024 * 1024;
const CLOSE_WITHIN_MS = 2_000;

/** Place in a chain: bytes of a file that the sink has, and the number of the last record that it has. */
const placeSchema = z.object({ file: z.string(), offset: z.number(), n: z.number() });
type Place = z.infer<typeof placeSchema>;
/** Records of newer versions are copied as well. */
const lineSchema = z.object({ mac: z.string(), record: z.object({ n: z.number() }) });
const cursorSchema = z.object({ target: z.string(), places: z.record(z.string(), placeSchema) });

export interface AuditSinkOptions {
  target: SinkTarget;
  /** Directory with the chains of the host. */
  directory: string;
  namespace: string;
  hostId: string;
  heads(): ReadonlyMap<string, AuditHead>;
  logger: Logger;
  everyMs?: number;
  deliver?: (target: SinkTarget, text: string) => Promise<void>;
}

/** Copies the records of a host's audit to a sink, until it is closed. */
export async function openAuditSink(options: AuditSinkOptions): Promise<SinkState> {
  const path = join(options.directory, 'sink.json');
  const stored = cursorSchema.safeParse(tryJson(await readFile(path, 'utf8').catch(() => ''))).data;
  // Another sink has no records yet.
  const places = stored?.target === JSON.stringify(options.target) ? stored.places : {};
  return new AuditSink(options, path, new Map(Object.entries(places)));
}

class AuditSink implements SinkState {
  readonly name = 'audit';
  readonly #options: AuditSinkOptions;
  readonly #path: string;
  readonly #places: Map<string, Place>;
  readonly #health: SinkHealth;
  readonly #rounds: { now(): Promise<void>; close(): Promise<void> };
  /** Tenant whose records were read last. The next batch begins with the one after it. */
  #lastTenant: string | undefined;
  #pausedUntil = 0;
  #isClosing = false;

  constructor(options: AuditSinkOptions, path: string, places: Map<string, Place>) {
    this.#options = options;
    this.#path = path;
    this.#places = places;
    this.#health = new SinkHealth('audit', () => options.logger);
    this.#rounds = repeat(() => this.#round(), { everyMs: options.everyMs ?? EVERY_MS });
  }

  get dropped(): number {
    return this.#health.dropped;
  }

  get waiting(): number {
    return [...this.#options.heads()].reduce(
      (sum, [tenant, { n }]) => sum + Math.max(0, n - (this.#places.get(tenant)?.n ?? 0)),
      0,
    );
  }

  get isUp(): boolean {
    return this.#health.isUp;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const ended = this.#rounds.close().then(() => this.#rounds.now());
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS).unref())]);
  }

  /** Delivers what is new in the chains. */
  async #round(): Promise<void> {
    if (performance.now() < this.#pausedUntil && !this.#isClosing) return;
    try {
      for (;;) {
        const batch = await this.#collect();
        if (batch.size === 0) return;
        await this.#copy(batch);
      }
    } catch (error) {
      this.#pausedUntil = performance.now() + this.#health.failed(error);
    }
  }

  /** Reads the next records of the chains that have any, of one tenant after the other, up to about one batch. */
  async #collect(): Promise<Map<string, NextRecords>> {
    const batch = new Map<string, NextRecords>();
    const heads = [...this.#options.heads()];
    const next = heads.findIndex(([tenant]) => tenant === this.#lastTenant) + 1;
    let bytes = 0;
    for (const [tenant, { n }] of [...heads.slice(next), ...heads.slice(0, next)]) {
      const before = this.#places.get(tenant);
      if (bytes >= BATCH_BYTES) break;
      if (n === (before?.n ?? 0)) continue;
      const records = await readNext(join(this.#options.directory, `t-${tenant}`), before);
      if (records === undefined) continue;
      batch.set(tenant, records);
      bytes += records.bytes;
      this.#lastTenant = tenant;
    }
    return batch;
  }

  /** Delivers records, and stores that the sink has them (COPY-2). */
  async #copy(batch: ReadonlyMap<string, NextRecords>): Promise<void> {
    const { target, namespace, hostId } = this.#options;
    let text = '';
    for (const [tenant, { lines }] of batch) {
      const about = JSON.stringify({ namespace, host: hostId, tenant }).slice(0, -1);
      for (const line of lines) text += `${about},${line.slice(1)}\n`;
    }
    if (text !== '') await (this.#options.deliver ?? deliver)(target, text);
    for (const [tenant, next] of batch) {
      this.#countMissing(tenant, next);
      this.#places.set(tenant, next.place);
    }
    const stored = { target: JSON.stringify(target), places: Object.fromEntries(this.#places) };
    await writeFile(`${this.#path}.new`, JSON.stringify(stored), { mode: 0o600 });
    await rename(`${this.#path}.new`, this.#path);
    this.#health.delivered();
  }

  /** Counts records between two that were delivered (COPY-3). */
  #countMissing(tenant: string, { first }: NextRecords): void {
    const before = this.#places.get(tenant);
    const missing = before === undefined ? 0 : first - before.n - 1;
    if (missing <= 0) return;
    this.#health.dropped += missing;
    const fields = { sink: 'audit', [ATTRIBUTES.tenant]: tenant, dropped: missing };
    this.#options.logger.error(fields, 'sink.records-missing');
  }
}

interface NextRecords {
  lines: string[];
  /** Number of the first record. */
  first: number;
  bytes: number;
  place: Place;
}

/** Reads the next whole lines of a chain, all of one file. Returns undefined if there are none. */
async function readNext(directory: string, before: Place | undefined): Promise<NextRecords | undefined> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.jsonl')).sort();
  const n = before?.n ?? 0;
  for (const file of files.filter((name) => before === undefined || name >= before.file)) {
    const path = join(directory, file);
    const known = file === before?.file ? before.offset : 0;
    // A file that has become shorter is another one.
    const from = (await stat(path)).size < known ? 0 : known;
    const chunk = await readLines(path, from);
    if (chunk === '') continue;
    const records = chunk.split('\n').flatMap((line) => {
      // A line that a crash left incomplete is none. The record after it reports it.
      const parsed = lineSchema.safeParse(tryJson(line)).data;
      return parsed === undefined ? [] : [{ line, n: parsed.record.n }];
    });
    const bytes = Buffer.byteLength(chunk);
    const place = { file, offset: from + bytes, n: records.at(-1)?.n ?? n };
    return { lines: records.map(({ line }) => line), first: records[0]?.n ?? n + 1, bytes, place };
  }
  return undefined;
}

/** Reads whole lines from an offset on, up to about BATCH_BYTES. */
async function readLines(path: string, from: number): Promise<string> {
  await using file = await open(path, 'r');
  for (let size = BATCH_BYTES; ; size = MOST_BYTES) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, from);
    const end = buffer.subarray(0, bytesRead).lastIndexOf('\n') + 1;
    if (end > 0 || bytesRead < size || size === MOST_BYTES) return buffer.toString('utf8', 0, end);
  }
}
