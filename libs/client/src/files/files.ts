import type { FileInfo } from '@shellfleet/protocol';

/**
 * File operations inside the sandbox of a session. They keep their place among its commands: a write before a `run` is done before it.
 * Paths are absolute. Relative ones, and ones with a NUL byte, reject with PATH_INVALID.
 *
 * Rejects with FILE_NOT_FOUND, FILE_IS_DIRECTORY or FILE_DENIED as the sandbox reports it, with CONTAINER_LOST when the sandbox was lost or
 * replaced before the operation was complete, with RESULT_EXPIRED when the answer to a step is no longer kept, and with the errors of a submit.
 */
export interface Files {
  /** The whole file. Rejects with FILE_TOO_LARGE above 256 MiB; `download` has no limit. */
  read(path: string): Promise<Uint8Array>;
  /** The whole file, decoded as UTF-8; invalid bytes become U+FFFD. Limits as `read`. */
  readText(path: string): Promise<string>;
  /** Writes the whole file and creates missing parent directories. Readers see the old file or the new one, never a part. */
  write(path: string, data: string | Uint8Array): Promise<void>;
  /** The entries of a directory. */
  list(path: string): Promise<FileInfo[]>;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string): Promise<void>;
  /** Copies a file of this machine into the sandbox, as `write` does. Any size; memory stays bounded. */
  upload(localPath: string, path: string): Promise<void>;
  /** Copies a file of the sandbox to this machine. An existing local file is replaced when the copy is complete. Any size; memory stays bounded. */
  download(path: string, localPath: string): Promise<void>;
}
