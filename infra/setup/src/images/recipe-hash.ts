import { createHash } from 'node:crypto';

/** Returns a hash of all inputs of a local image, for its name. A changed recipe gives a new image. */
export function recipeHash(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 12);
}
