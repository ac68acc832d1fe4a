/** The images that `up` makes on a host, by the short names that a spec may use for them. They are in no registry. */
export const SESSION_IMAGES = { full: 'shellfleet/session:full', slim: 'shellfleet/session:slim' } as const;

/** The whole name of an image. Any name but the short ones is whole. */
export function toWholeName(image: string): string {
  return Object.hasOwn(SESSION_IMAGES, image) ? SESSION_IMAGES[image as keyof typeof SESSION_IMAGES] : image;
}

/**
 * The image of a session that names none, and the one to use where the host does not have it yet: a host's first `up` makes `slim` at once, and
 * `full` some minutes later.
 */
export function toDefaultImage(image: string): { image: string; otherwise?: string } {
  const name = toWholeName(image);
  return name === SESSION_IMAGES.full ? { image: name, otherwise: SESSION_IMAGES.slim } : { image: name };
}

/** Whether only a host's own set-up makes the image, so that a registry that has one of this name is not asked. */
export function isMadeHere(image: string): boolean {
  return image.startsWith('shellfleet/session:');
}
