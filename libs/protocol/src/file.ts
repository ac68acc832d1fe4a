import { z } from 'zod';

export const fileInfoSchema = z.object({
  name: z.string(),
  path: z.string(),
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  size: z.number(),
  mode: z.number(),
  modifiedAt: z.string(),
});
export type FileInfo = z.infer<typeof fileInfoSchema>;

/** The data that a finished file operation returns in addition to its Result. `data` is base64. */
export const fileAnswerSchema = z.object({
  data: z.string().optional(),
  size: z.number().optional(),
  modifiedAt: z.string().optional(),
  entries: z.array(fileInfoSchema).optional(),
});
export type FileAnswer = z.infer<typeof fileAnswerSchema>;
