import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { imageId } from '@shellfleet/setup';
import { root } from '../steps.ts';
import type { ImageName } from './make-images.ts';

type Endpoint = Parameters<typeof imageId>[0];

export interface NameOptions {
  name: ImageName;
  /** Name of the image on the engine. */
  image: string;
  registry: string | undefined;
  tag: string | undefined;
}

/**
 * Returns the name of an image for clusters. Without a given tag it changes with the content, so that no node takes an
 * older image for it.
 */
export async function nameImage(endpoint: Endpoint, { name, image, registry, tag }: NameOptions): Promise<string> {
  return `${registry ?? 'shellfleet'}/${name}:${tag ?? (await tagOf(endpoint, image))}`;
}

async function tagOf(endpoint: Endpoint, image: string): Promise<string> {
  const id = (await imageId(endpoint, image)).replace('sha256:', '').slice(0, 12);
  return `${await readVersion()}-${id}`;
}

/** Returns the version of the packages. */
export async function readVersion(): Promise<string> {
  const manifest = await readFile(join(root, 'apps/producer/package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
