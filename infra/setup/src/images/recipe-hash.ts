import { createHash } from 'node:crypto';

/** Names a local image after everything it is made from, so that a changed recipe is a new image and an old one is reused. */
export function recipeHash(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 12);
}
