import type { ApprovalRequestedData, FileInfo } from '@shellfleet/protocol';

export interface FileOptions {
  /** Keeps the place among the session's commands: done after those that were submitted before, and before those that come after. Default: beside them. */
  ordered?: boolean | undefined;
  /** Ends the call between two of its steps; it rejects with the signal's reason. A question that it waits for is withdrawn. */
  signal?: AbortSignal | undefined;
  /** Is called when the operation begins to wait for a person, with the question: `fleet.approvals` answers it. Not with `ordered`. */
  onApproval?: ((question: ApprovalRequestedData) => void) | undefined;
}

export interface RemoveOptions extends FileOptions {
  /** False: a directory that is not empty is refused with FILE_IS_DIRECTORY. Default: true. */
  recursive?: boolean | undefined;
}

export interface ListOptions extends FileOptions {
  /** False: the path is taken as it is, also with `*`, `?` or `[`. Default: true. */
  glob?: boolean | undefined;
}

export interface TransferProgress {
  /** Of file contents, so far. */
  bytes: number;
  /** Files that were copied whole. */
  files: number;
}

export interface TransferOptions extends FileOptions {
  /** Gets the sums so far whenever a piece was copied. */
  onProgress?: ((progress: TransferProgress) => void) | undefined;
}

/**
 * File operations inside the sandbox of a session, as its user. They are done beside its commands, also while one runs; `{ ordered: true }` keeps
 * their place among them. A session without a sandbox gets one first.
 * Paths are absolute. Relative ones, and ones with a NUL byte, reject with PATH_INVALID.
 *
 * Where the rules of the host or the session's `approval` ask about an operation, it waits for a person, beside the commands. It rejects with
 * FILE_DENIED when a rule or a person denies it, and with APPROVAL_EXPIRED when nobody answers in time.
 *
 * Rejects with FILE_NOT_FOUND, FILE_IS_DIRECTORY or FILE_DENIED as the sandbox reports it, with CONTAINER_LOST when the sandbox was lost or
 * replaced before the operation was complete, with RESULT_EXPIRED when the answer to an ordered step is no longer kept, with SESSION_CLOSED,
 * with QUOTA_EXCEEDED when too many operations of the session wait, and with the errors of a submit.
 */
export interface Files {
  /** The whole file. Rejects with FILE_TOO_LARGE above 256 MiB; `download` and `stream` have no limit. */
  read(path: string, options?: FileOptions): Promise<Uint8Array>;
  /** The whole file, decoded as UTF-8; invalid bytes become U+FFFD. Limits as `read`. */
  readText(path: string, options?: FileOptions): Promise<string>;
  /** The file, piece by piece. Any size. */
  stream(path: string, options?: Omit<FileOptions, 'ordered'>): AsyncIterable<Uint8Array>;
  /** Writes the whole file and creates missing parent directories. Readers see the old file or the new one, never a part. A replaced file keeps its mode. */
  write(path: string, data: string | Uint8Array | AsyncIterable<Uint8Array>, options?: FileOptions): Promise<void>;
  /**
   * The entries of a directory, ordered by their names' bytes. With `*`, `?`, `[a-z]` or `**` in the path: everything that matches it, with `**` as
   * any number of directories. As in a shell, a leading dot of a name has to be written. Symbolic links that a pattern matches are not followed, and
   * directories that may not be read are passed over.
   */
  list(path: string, options?: ListOptions): Promise<FileInfo[]>;
  /** Of the file itself; of a symbolic link the link. */
  stat(path: string, options?: FileOptions): Promise<FileInfo>;
  /** Makes a directory and its missing parents. One that exists is as good. */
  mkdir(path: string, options?: FileOptions): Promise<void>;
  /** Renames a file or directory within one file system, and creates missing parents of its new name. A file with that name is replaced. */
  rename(from: string, to: string, options?: FileOptions): Promise<void>;
  /** Sets the permission bits, such as 0o755. */
  chmod(path: string, mode: number, options?: FileOptions): Promise<void>;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string, options?: RemoveOptions): Promise<void>;
  /**
   * Copies a file or a directory of this machine into the sandbox, with its permission bits. Any size and number of files; memory stays bounded. A
   * file is written as `write` does. What is in a directory is added to what is there; symbolic links stay links; anything but files, directories
   * and links rejects with FILE_DENIED.
   */
  upload(localPath: string, path: string, options?: TransferOptions): Promise<void>;
  /**
   * Copies a file or a directory of the sandbox to this machine, with its permission bits (not setuid, setgid and sticky). Any size and number of
   * files; memory stays bounded. A local file is replaced when its copy is complete; a device or FIFO is written to; of a symbolic link the file that it
   * names is replaced. Nothing is written outside of a directory that is copied, whatever names and links the sandbox has in it.
   */
  download(path: string, localPath: string, options?: TransferOptions): Promise<void>;
}
