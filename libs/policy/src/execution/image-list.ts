/**
 * Whether the operator's list allows an image. An entry is a whole name, a repository (with any tag), or a prefix that
 * ends in '/'. The session spec's schema has checked the syntax of the name.
 */
export function isListedImage(image: string, list: readonly string[]): boolean {
  const repository = repositoryOf(image);
  return list.some(
    (entry) => entry === image || entry === repository || (entry.endsWith('/') && image.startsWith(entry)),
  );
}

/** The name without tag and digest. A colon before the last slash belongs to the port of a registry. */
function repositoryOf(image: string): string {
  const withoutDigest = image.split('@')[0] ?? '';
  const colon = withoutDigest.indexOf(':', withoutDigest.lastIndexOf('/') + 1);
  return colon < 0 ? withoutDigest : withoutDigest.slice(0, colon);
}
