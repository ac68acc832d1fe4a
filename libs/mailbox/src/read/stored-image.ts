export interface StoredImage {
  name: string;
  digest: string;
}

/** Formats the field `image` of a session's state. Names have no space. */
export const toStoredImage = (image: StoredImage | undefined): string =>
  image === undefined ? '' : `${image.digest} ${image.name}`;

/** Parses the image of a session. Returns undefined when the session has had no container. */
export function fromStoredImage(text: string): StoredImage | undefined {
  const [digest = '', name = ''] = text.split(' ');
  return name === '' ? undefined : { name, digest };
}
