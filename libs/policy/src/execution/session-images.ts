/** The images that `up` makes on a host, by the short names that a spec may use for them. They are in no registry. */
export type SessionImages = Readonly<Record<'full' | 'slim', string>>;

const REPOSITORY = 'shellfleet/session';

/** Their names on a host on which no `up` has run: its operator has loaded them under these. */
export const SESSION_IMAGES: SessionImages = { full: `${REPOSITORY}:full`, slim: `${REPOSITORY}:slim` };

/**
 * Their names for one version and one owner, which is a state folder of `up`: another fleet or version on the same
 * engine gives its images other names, so that it never changes what this one uses.
 */
export function ownSessionImages(version: string, owner: string): SessionImages {
  const tag = (variant: keyof SessionImages) => `${REPOSITORY}:${variant}-${version}-${owner}`;
  return { full: tag('full'), slim: tag('slim') };
}

/** The file of a state folder that holds its owner id, for the names above. */
export const IMAGE_OWNER_FILE = 'image-owner';

/** The whole name of an image. Any name but the short ones is whole. */
export function toWholeName(image: string, names: SessionImages = SESSION_IMAGES): string {
  return Object.hasOwn(names, image) ? names[image as keyof SessionImages] : image;
}

/**
 * The image of a session that names none, and the one to use where the host does not have it yet: a host's first `up`
 * makes `slim` at once, and `full` some minutes later.
 */
export function toDefaultImage(
  image: string,
  names: SessionImages = SESSION_IMAGES,
): { image: string; otherwise?: string } {
  const name = toWholeName(image, names);
  return name === names.full ? { image: name, otherwise: names.slim } : { image: name };
}

/** Whether only a host's own set-up makes the image, so that a registry that has one of this name is not asked. */
export function isMadeHere(image: string): boolean {
  return image.startsWith(`${REPOSITORY}:`);
}
