import { z } from 'zod';

export const fileInfoSchema: z.ZodObject<{ [field in keyof FileInfo]: z.ZodType<FileInfo[field]> }> = z.object({
  name: z.string(),
  path: z.string(),
  type: z.enum(['file', 'directory', 'symlink', 'other']),
  size: z.number(),
  mode: z.number(),
  modifiedAt: z.string(),
});

/** A file, directory or link in a sandbox. */
export interface FileInfo {
  /** Its name in its directory. */
  name: string;
  /** Its absolute path. */
  path: string;
  /** What it is. Links are not followed. */
  type: 'file' | 'directory' | 'symlink' | 'other';
  /** In bytes. */
  size: number;
  /** Permission bits, such as 0o644. */
  mode: number;
  /** When its content last changed; ISO 8601. */
  modifiedAt: string;
}

/** The data that a finished file operation returns in addition to its Result. `data` is base64. */
export const fileAnswerSchema = z.object({
  data: z.string().optional(),
  size: z.number().optional(),
  modifiedAt: z.string().optional(),
  entries: z.array(fileInfoSchema).optional(),
});
export type FileAnswer = z.infer<typeof fileAnswerSchema>;
