import { createHash } from 'node:crypto';

/** A hash of all inputs of a local image, for its name: a changed recipe gives a new image, an unchanged one reuses the old. */
export function recipeHash(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 12);
}
