import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { recipeHash } from './recipe-hash.ts';

/**
 * The variants of a session image. `full` has what developers and agents use in their first hour, `slim` what a
 * session's commands may rely on.
 */
export type SessionVariant = 'slim' | 'full';

export type SessionRecipe = {
  variant: SessionVariant;
  /** Its name changes with its content. */
  image: string;
  packages: string[];
  nodePath: string;
  /** Version of npm in the image. Undefined for an image without npm. */
  npmVersion: string | undefined;
};

// Part of the hash: raise it when the build steps change but the packages do not.
const buildVersions: Record<SessionVariant, string> = { slim: '2', full: '1' };
const npmVersion = '11.21.2';

/** The names under which workers find the images, whatever their content. */
export type ImageNames = Readonly<Record<SessionVariant, string>>;

/** Those of a host on which no `up` has run, as `SESSION_IMAGES` of @shellfleet/policy has them. */
export const LOADED_NAMES: ImageNames = { slim: 'shellfleet/session:slim', full: 'shellfleet/session:full' };

/** Reads the recipe of a local session image. */
export async function readSessionRecipe(root: string, variant: SessionVariant): Promise<SessionRecipe> {
  const packages = await readPackages(root, 'slim');
  if (variant === 'full') packages.push(...(await readPackages(root, 'full')));
  const npm = variant === 'full' ? npmVersion : undefined;
  const parts = [buildVersions[variant], ...packages, ...(npm === undefined ? [] : [npm])];
  const image = `shellfleet/session:${recipeHash([...parts, process.version, process.arch])}`;
  return { variant, image, packages, nodePath: process.execPath, npmVersion: npm };
}

/** The packages of one list: those of `full` come on top of those of `slim`. */
export async function readPackages(root: string, variant: SessionVariant): Promise<string[]> {
  return parsePackages(await readFile(join(root, `infra/images/session/${variant}.txt`), 'utf8'));
}

export function parsePackages(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter(Boolean);
}
