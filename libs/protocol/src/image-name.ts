import { z } from 'zod';

const IMAGE_PATTERN =
  /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

/** Name of an image of containers, perhaps without a registry and a tag. */
export const imageNameSchema = z
  .string('must be a string')
  .max(256, { error: 'must be at most 256 characters', abort: true })
  .regex(IMAGE_PATTERN, 'is not an image name (registry/name:tag or name@sha256:digest)');
