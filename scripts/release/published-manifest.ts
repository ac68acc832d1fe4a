/** The relevant fields of a package.json of this repository. */
export interface Manifest {
  name: string;
  version: string;
  files: string[];
  exports: Record<string, string | Record<string, string>>;
  bin?: Record<string, string>;
  dependencies?: Record<string, string>;
  publishConfig: { exports?: Manifest['exports']; bin?: Manifest['bin']; [setting: string]: unknown };
  [field: string]: unknown;
}

/** Fields that only this repository reads. */
const ownFields = ['private', 'scripts', 'nx', 'devDependencies'];

/**
 * Returns the published package.json: its entry points are those of `publishConfig`, not those for development.
 * Throws when a dependency has no version.
 */
export function toPublished(manifest: Manifest): Record<string, unknown> {
  const { exports, bin, ...publishConfig } = manifest.publishConfig;
  for (const [name, range] of Object.entries(manifest.dependencies ?? {})) {
    if (range === '*') throw new Error(`${manifest.name} depends on any version of ${name}.`);
  }
  const published: Record<string, unknown> = {
    ...manifest,
    exports: exports ?? withoutSource(manifest.exports),
    ...(bin === undefined ? {} : { bin }),
    publishConfig,
  };
  for (const field of ownFields) delete published[field];
  return published;
}

/**
 * Returns `repository` and `homepage` of a published package in `directory`, if the root's package.json has a
 * `repository`.
 */
export function placeOf(
  { repository }: { repository?: { type: string; url: string } },
  directory: string,
): { repository?: object; homepage?: string } {
  if (repository === undefined) return {};
  const site = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
  return { repository: { ...repository, directory }, homepage: `${site}#readme` };
}

function withoutSource(exports: Manifest['exports']): Manifest['exports'] {
  const published: Manifest['exports'] = {};
  for (const [entrance, target] of Object.entries(exports)) {
    if (typeof target === 'string') published[entrance] = target;
    else {
      const { '@shellfleet/source': _, ...conditions } = target;
      if (Object.keys(conditions).length > 0) published[entrance] = conditions;
    }
  }
  return published;
}
