/** Tells whether a list allows an image. Its items are whole names, repositories, or prefixes that end in '/'. */
export function isListedImage(image: string, list: readonly string[]): boolean {
  const repository = repositoryOf(image);
  return list.some(
    (entry) => entry === image || entry === repository || (entry.endsWith('/') && image.startsWith(entry)),
  );
}

/** Removes tag and digest from an image name. A colon before the last slash belongs to the port of a registry. */
function repositoryOf(image: string): string {
  const withoutDigest = image.split('@')[0] ?? '';
  const colon = withoutDigest.indexOf(':', withoutDigest.lastIndexOf('/') + 1);
  return colon < 0 ? withoutDigest : withoutDigest.slice(0, colon);
}
