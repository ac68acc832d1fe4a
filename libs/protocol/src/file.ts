import { z } from 'zod';

export const fileInfoSchema: z.ZodObject<{ [field in keyof FileInfo]: z.ZodType<FileInfo[field]> }> = z
  .object({
    name: z.string().meta({ description: 'Name in its directory.' }),
    path: z.string().meta({ description: 'Absolute path.' }),
    type: z
      .enum(['file', 'directory', 'symlink', 'other'])
      .meta({ description: 'Kind of file. Links are not followed.' }),
    size: z.number().meta({ description: 'Size in bytes.' }),
    mode: z.number().meta({ description: 'Permission bits, such as 0o644.' }),
    modifiedAt: z.string().meta({ description: 'Time of the last change of the content; ISO 8601.' }),
  })
  .meta({ id: 'FileInfo', description: 'A file, directory or link in a sandbox.' });

/** A file, directory or link in a sandbox. */
export interface FileInfo {
  /** Name in its directory. */
  name: string;
  /** Absolute path. */
  path: string;
  /** Kind of file. Links are not followed. */
  type: 'file' | 'directory' | 'symlink' | 'other';
  /** Size in bytes. */
  size: number;
  /** Permission bits, such as 0o644. */
  mode: number;
  /** Time of the last change of the content; ISO 8601. */
  modifiedAt: string;
}

/** An item of a walk. `name` is relative to the path of the walk. */
const fileRecordSchema = z.object({
  name: z.string(),
  type: fileInfoSchema.shape.type,
  size: z.number(),
  mode: z.number(),
  modifiedAt: z.string(),
  /** Target of a symbolic link. */
  target: z.string().optional(),
  /** A directory that may not be entered. */
  unreadable: z.literal(true).optional(),
});
export type FileRecord = z.infer<typeof fileRecordSchema>;

/** One small file: its content in base64, or the reason why the content is missing. */
const readFileSchema = z.object({
  state: z.enum(['read', 'gone', 'no-room', 'refused']),
  mode: z.number(),
  data: z.string(),
});

/** Data of a finished file operation, in addition to its Result. `data` is base64. */
export const fileReplySchema = z.object({
  data: z.string().optional(),
  /** Size of the whole file that was read. */
  size: z.number().optional(),
  mode: z.number().optional(),
  records: z.array(fileRecordSchema).optional(),
  /** Whether the walk continues after the last record. */
  more: z.boolean().optional(),
  /** Files that were read, in the order of the request. */
  files: z.array(readFileSchema).optional(),
});
export type FileReply = z.infer<typeof fileReplySchema>;
