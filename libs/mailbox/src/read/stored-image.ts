/** The image of a session's container. */
export interface StoredImage {
  name: string;
  digest: string;
}

/** As the field `image` of the session's state has it. No name has a space. */
export const toStoredImage = (image: StoredImage | undefined): string =>
  image === undefined ? '' : `${image.digest} ${image.name}`;

/** Parses the stored image of a session. Returns undefined when the session has had no container. */
export function fromStoredImage(text: string): StoredImage | undefined {
  const [digest = '', name = ''] = text.split(' ');
  return name === '' ? undefined : { name, digest };
}
