import { readFileSync } from 'node:fs';
import type { SessionSpec } from '@shellfleet/client';
import { InvalidArgumentError } from 'commander';

/** Reads a spec, whose fields are checked when the session is opened. */
export function readSpecFile(path: string): SessionSpec {
  const spec = parse(path, read(path));
  if (typeof spec === 'object' && spec !== null && !Array.isArray(spec)) return spec;
  throw new InvalidArgumentError(`Give a file with one JSON object, such as {"image": "debian:12"}.`);
}

/** Merges specs. Fields of `flags` replace those of the file, but maps of names are merged. */
export function mergeSpecs(file: SessionSpec = {}, flags: SessionSpec): SessionSpec {
  const merged = { ...file, ...flags };
  for (const field of ['env', 'labels', 'hosts', 'secrets', 'limits', 'sandbox'] as const) {
    if (file[field] !== undefined && flags[field] !== undefined) {
      Object.assign(merged, { [field]: { ...file[field], ...flags[field] } });
    }
  }
  return merged;
}

/** Parses docker's `PATH[:TARGET][:ro]`. The schema checks the target. */
export function parseWorkspace(text: string): NonNullable<SessionSpec['workspace']> {
  const [, path = '', target, readOnly] = /^(\/[^:]*)(?::(?:\/workspace\/?|(\/[^:]*)))?(:ro)?$/.exec(text) ?? [];
  if (path === '')
    throw new InvalidArgumentError(
      'Give an absolute path, with :TARGET for another place than /workspace, and :ro for a read-only one.',
    );
  if (target === undefined && readOnly === undefined) return path;
  return { path, ...(target === undefined ? {} : { target }), ...(readOnly === undefined ? {} : { readOnly: true }) };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read: ${(error as Error).message}.`);
  }
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`${path} is not JSON: ${(error as Error).message}.`);
  }
}
