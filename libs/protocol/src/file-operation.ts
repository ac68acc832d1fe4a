import { z } from 'zod';

const path = z.string();
const mode = z.number().int().min(0).max(0o7777);

/** Size, and SHA-256 in hex. */
export const contentDigestSchema = z.object({
  bytes: z.number().int().min(0),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ContentDigest = z.infer<typeof contentDigestSchema>;

/**
 * An item to write. `name` is relative to the directory. `data` is base64: the content of a file, or the target of a
 * link.
 */
const writtenEntrySchema = z.object({
  /** Kind of the item. `mode` changes only the mode of a file that exists. */
  kind: z.enum(['directory', 'file', 'symlink', 'mode']),
  name: z.string(),
  mode,
  data: z.string().optional(),
});
export type WrittenEntry = z.infer<typeof writtenEntrySchema>;

/** One step of a file operation. Large files and directories need several steps. `data` is base64. */
export const fileOperationSchema = z.discriminatedUnion('name', [
  z.object({ name: z.literal('read'), path, offset: z.number(), length: z.number() }),
  /**
   * Writes one part of a file to a temporary file. The last part renames the temporary file to `path`. Without `mode`,
   * a replaced file keeps its mode.
   */
  z.object({
    name: z.literal('write'),
    path,
    offset: z.number(),
    last: z.boolean(),
    transfer: z.string(),
    data: z.string(),
    mode: mode.optional(),
    /** Digest of the whole file, about which a person was asked. Parts of another content are refused. */
    whole: contentDigestSchema.optional(),
  }),
  /** Lists a page of the items below the path, `depth` levels deep (0: all levels), after the item `after`. */
  z.object({ name: z.literal('list'), path, depth: z.number().int().min(0), after: z.string() }),
  z.object({ name: z.literal('stat'), path }),
  z.object({ name: z.literal('remove'), path, recursive: z.boolean() }),
  z.object({ name: z.literal('mkdir'), path }),
  z.object({ name: z.literal('rename'), path, to: z.string() }),
  z.object({ name: z.literal('chmod'), path, mode }),
  /** Writes items below the path. */
  z.object({ name: z.literal('unpack'), path, entries: z.array(writtenEntrySchema) }),
  /** Reads small files below the path, as many as the reply has room for. */
  z.object({ name: z.literal('pack'), path, names: z.array(z.string()) }),
]);
export type FileOperation = z.infer<typeof fileOperationSchema>;

/** Tells whether an operation changes nothing, so that it may be done twice. */
export function onlyReads({ name }: FileOperation): boolean {
  return name === 'read' || name === 'list' || name === 'stat' || name === 'pack';
}
