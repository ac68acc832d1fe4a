/** The images that `up` builds on a host, by the short names that a spec may use. They are in no registry. */
export type SessionImages = Readonly<Record<'full' | 'slim', string>>;

const REPOSITORY = 'shellfleet/session';

/** Names of the images on a host without `up`, whose operator has loaded the images. */
export const SESSION_IMAGES: SessionImages = { full: `${REPOSITORY}:full`, slim: `${REPOSITORY}:slim` };

/**
 * Returns image names that no other version and no other owner uses on an engine. An owner is a state directory of
 * `up`.
 */
export function ownSessionImages(version: string, owner: string): SessionImages {
  const tag = (variant: keyof SessionImages) => `${REPOSITORY}:${variant}-${version}-${owner}`;
  return { full: tag('full'), slim: tag('slim') };
}

/** Name of the file in a state directory that holds its owner id. */
export const IMAGE_OWNER_FILE = 'image-owner';

/** Returns the whole name of an image. A name that is not one of the short names is whole already. */
export function toWholeName(image: string, names: SessionImages = SESSION_IMAGES): string {
  return Object.hasOwn(names, image) ? names[image as keyof SessionImages] : image;
}

/**
 * Returns the image of a session that names none, and the image to use while the first `up` of the host still builds
 * it.
 */
export function toDefaultImage(
  image: string,
  names: SessionImages = SESSION_IMAGES,
): { image: string; otherwise?: string } {
  const name = toWholeName(image, names);
  return name === names.full ? { image: name, otherwise: names.slim } : { image: name };
}

/** Tells whether only the host's set-up builds the image, so that no registry has it. */
export function isMadeHere(image: string): boolean {
  return image.startsWith(`${REPOSITORY}:`);
}
