import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { recipeHash } from './recipe-hash.ts';

/**
 * Variants of a session image: `slim` has what commands may rely on, `full` also common tools of developers and agents.
 */
export type SessionVariant = 'slim' | 'full';

export type SessionRecipe = {
  variant: SessionVariant;
  /** Name of the image, which changes with its content. */
  image: string;
  packages: string[];
  nodePath: string;
  /** Version of npm in the image, if it has npm. */
  npmVersion: string | undefined;
};

// Part of a recipe's hash. Raise the version of a variant when its build steps change but its packages do not.
const buildVersions: Record<SessionVariant, string> = { slim: '3', full: '2' };
const npmVersion = '11.21.2';

/** Names under which workers find the images, whatever their content. */
export type ImageNames = Readonly<Record<SessionVariant, string>>;

/**
 * Names of the images on a host without a fleet from `shellfleet up`. They equal `SESSION_IMAGES` of
 * @shellfleet/policy.
 */
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

/** Reads the packages of one list. Those of `full` are added to those of `slim`. */
export async function readPackages(root: string, variant: SessionVariant): Promise<string[]> {
  return parsePackages(await readFile(join(root, `infra/images/session/${variant}.txt`), 'utf8'));
}

export function parsePackages(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter(Boolean);
}
