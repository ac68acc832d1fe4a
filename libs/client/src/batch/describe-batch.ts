import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { PROTOCOL_VERSION, type Result, type SessionSpec, tryJson } from '@shellfleet/protocol';
import { readFleetConfiguration } from '@shellfleet/redis';
import { listHosts } from '../hosts/list-hosts.ts';
import type { FleetView } from '../view.ts';
import type { ParsedBatchOptions } from './batch-options.ts';
import type { BatchManifest } from './manifest.ts';
import type { Earlier } from './results-file.ts';
import type { TaskResult } from './task-result.ts';

/** Drivers and images that a manifest lists. It is rewritten as a whole when it changes. */
const MOST_DRIVERS = 100;
const MOST_IMAGES = 10_000;

/** Returns the manifest with which a driver begins. What an earlier driver recorded about images is kept. */
export async function describeBatch(
  view: FleetView,
  name: string,
  options: ParsedBatchOptions,
  { manifest: before, attempts }: Pick<Earlier, 'manifest' | 'attempts'>,
): Promise<BatchManifest> {
  const { spec, source, count, ...rest } = options;
  // A tenant's user of Redis may not be allowed to read about hosts and the configuration.
  const [hosts, applied, client] = await Promise.all([
    listHosts(view).catch(() => []),
    readFleetConfiguration(view.redis, view.fleet).catch(() => undefined),
    readClientVersion(),
  ]);
  const driver = { machine: hostname(), client, protocol: PROTOCOL_VERSION, node: process.version };
  return {
    name,
    attempts: Object.fromEntries(attempts),
    drivers: [...(before?.drivers ?? []).slice(1 - MOST_DRIVERS), { startedAt: new Date().toISOString(), ...driver }],
    ...(source === undefined ? {} : { tasks: { ...source, count: count ?? 0 } }),
    options: rest,
    ...(spec === undefined ? {} : { spec: withoutSecrets(spec) }),
    hosts: hosts.map(({ id, version, policies }) => ({ id, version, policies })),
    images: before?.images ?? {},
    ...(applied && { configuration: { revision: applied.revision, rules: applied.configuration.rules } }),
  };
}

function withoutSecrets(spec: SessionSpec): Record<string, unknown> {
  const { secrets, ...rest } = spec;
  if (secrets === undefined) return rest;
  return { ...rest, secrets: Object.fromEntries(Object.keys(secrets).map((name) => [name, '[REDACTED_SECRET]'])) };
}

async function readClientVersion(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8').catch(() => '');
  return (tryJson(text) as { version?: string } | undefined)?.version ?? '';
}

/** Least time between two writes of a manifest because of new images, and what each image adds to it. */
const WRITE_EVERY_MS = 2_000;
const MORE_PER_IMAGE_MS = 20;

/** Keeps the manifest of a running batch up to date. */
export class ManifestKeeper implements AsyncDisposable {
  readonly #manifest: BatchManifest;
  readonly #store: (manifest: BatchManifest) => Promise<void>;
  #images: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(manifest: BatchManifest, store: (manifest: BatchManifest) => Promise<void>) {
    this.#manifest = manifest;
    this.#images = Object.values(manifest.images).flat().length;
    this.#store = store;
  }

  /** Records the images of a task's containers. A write that fails is repeated at the end. */
  noteImages(image: string, { setup = [], results, grade }: TaskResult): void {
    for (const { imageDigest } of [...setup, ...results, ...(grade === undefined ? [] : [grade])])
      if (imageDigest !== undefined) this.#noteImage(image, imageDigest);
  }

  #noteImage(image: string, digest: NonNullable<Result['imageDigest']>): void {
    const digests = Object.hasOwn(this.#manifest.images, image) ? (this.#manifest.images[image] ?? []) : [];
    if (digests.includes(digest) || this.#images >= MOST_IMAGES) return;
    this.#images++;
    // An assignment would not store the name `__proto__`.
    const own = { enumerable: true, configurable: true, writable: true };
    Object.defineProperty(this.#manifest.images, image, { value: [...digests, digest], ...own });
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.#write().catch(() => {});
      },
      WRITE_EVERY_MS + this.#images * MORE_PER_IMAGE_MS,
    ).unref();
  }

  #write(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#store(this.#manifest));
    return this.#writing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    const driver = this.#manifest.drivers.at(-1);
    if (driver !== undefined) driver.endedAt = new Date().toISOString();
    await this.#write();
  }
}
