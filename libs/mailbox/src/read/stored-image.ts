export interface StoredImage {
  name: string;
  digest: string;
}

const SHA256 = 'sha256:';

/**
 * Formats the fields `imageDigest` and `image` of a session's state, `<digest> <name>`. Names have no space. The digest
 * lacks its `sha256:`, with which Redis would not keep the state compact.
 */
export const toStoredImage = (image: StoredImage | undefined): string =>
  image === undefined ? '' : `${image.digest.replace(SHA256, '')} ${image.name}`;

/** Parses the image of a session. Returns undefined when the session has had no container. */
export function fromStoredImage(text: string): StoredImage | undefined {
  const [digest = '', name = ''] = text.split(' ');
  if (name === '') return undefined;
  return { name, digest: /^[0-9a-f]{64}$/.test(digest) ? `${SHA256}${digest}` : digest };
}
