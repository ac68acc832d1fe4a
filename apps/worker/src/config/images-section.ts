import { imageNameSchema } from '@shellfleet/protocol';
import { z } from 'zod';

const bytes = z.int('must be a whole number of bytes').min(0, 'must be at least 0');

export const imagesSchema = z.strictObject(
  {
    maxBytes: bytes
      .optional()
      .describe('Bytes of the images that this host pulled; over it the least recently used go; default: no limit'),
    keepFreeBytes: bytes
      .optional()
      .describe("Bytes that stay free on the engine's disk, as long as pulled images can go; default: 0"),
    prepull: z
      .array(imageNameSchema, 'must be a list of image names')
      .default([])
      .describe('Images that the host pulls before a session asks, and keeps'),
    logins: z
      .string()
      .startsWith('/', 'must be an absolute path')
      .optional()
      .describe("A config.json of Docker with logins for registries; default: that of the worker's user"),
  },
  'must have only these fields: maxBytes, keepFreeBytes, prepull, logins',
);
