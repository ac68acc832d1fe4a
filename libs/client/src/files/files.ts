import type { ApprovalRequestedData, FileInfo } from '@shellfleet/protocol';

export interface FileOptions {
  /** Whether the operation keeps its order among the session's commands. Default: it runs alongside them. */
  ordered?: boolean | undefined;
  /**
   * Ends the call between two steps, or while the session waits for a shell, with the signal's reason, and withdraws
   * its question.
   */
  signal?: AbortSignal | undefined;
  /** Called with the question when the operation begins to wait for a person. Not called with `ordered`. */
  onApproval?: ((question: ApprovalRequestedData) => void) | undefined;
}

export interface RemoveOptions extends FileOptions {
  /** Whether a directory that is not empty is removed, and not refused with FILE_IS_DIRECTORY. Default: true. */
  recursive?: boolean | undefined;
}

export interface ListOptions extends FileOptions {
  /** Whether `*`, `?` and `[` in the path are a pattern. Default: true. */
  glob?: boolean | undefined;
}

export interface StreamOptions extends Omit<FileOptions, 'ordered'> {
  /** First byte that is read. Default: 0. */
  offset?: number | undefined;
  /** Most bytes that are read. Default: all that follow. */
  length?: number | undefined;
}

/** A file that is being read. */
export interface OpenedFile {
  /** Size of the whole file. */
  size: number;
  /** Permission bits, such as 0o644. */
  mode: number;
  /** The contents of the range, which is read while they are taken. */
  contents: AsyncIterable<Uint8Array>;
}

export interface TransferProgress {
  /** Bytes of file contents, so far. */
  bytes: number;
  /** Number of files that were copied completely. */
  files: number;
}

export interface TransferOptions extends FileOptions {
  /** Called after each copied piece, with the totals so far. */
  onProgress?: ((progress: TransferProgress) => void) | undefined;
}

/**
 * File operations inside the sandbox of a session, as its user. They run alongside its commands; with `{ ordered: true
 * }` they keep their order among the commands. A session without a sandbox gets one first. Relative paths, and paths
 * with a NUL byte, reject with PATH_INVALID.
 *
 * Where the host's rules or the session's `approval` ask about an operation, it waits for a person. It rejects with
 * FILE_DENIED when a rule or a person denies it, and with APPROVAL_EXPIRED when nobody answers in time.
 *
 * Rejects with FILE_NOT_FOUND, FILE_IS_DIRECTORY or FILE_DENIED as the sandbox reports it, with CONTAINER_LOST when the
 * sandbox was lost or replaced, with RESULT_EXPIRED when the reply to an ordered step is no longer kept, with
 * SESSION_CLOSED, with QUOTA_EXCEEDED when too many operations of the session wait, and with the errors of a submit.
 */
export interface Files {
  /** Reads the whole file. Rejects with FILE_TOO_LARGE above 256 MiB; `download` and `stream` have no limit. */
  read(path: string, options?: FileOptions): Promise<Uint8Array>;
  /** Reads the whole file as UTF-8; invalid bytes become U+FFFD. Limits as `read`. */
  readText(path: string, options?: FileOptions): Promise<string>;
  /** Yields the file, or a range of it, piece by piece. The file may have any size. */
  stream(path: string, options?: StreamOptions): AsyncIterable<Uint8Array>;
  /** Begins to read a file, or a range of it: resolves with its size before its contents are read. */
  open(path: string, options?: StreamOptions): Promise<OpenedFile>;
  /**
   * Yields a directory as a tar, in bounded memory: names relative to the directory, which itself is `./`, permission
   * bits (not setuid, setgid and sticky) and times. Symbolic links stay links and come last. Rejects with FILE_DENIED
   * for other kinds of files, and for a file that changes meanwhile.
   */
  readTar(path: string, options?: Omit<FileOptions, 'ordered'>): AsyncIterable<Uint8Array>;
  /**
   * Writes the contents of a tar to a directory, as `upload` writes a local one, in bounded memory. Rejects with
   * FILE_DENIED for names that lead out of the directory and for other kinds than files, directories and symbolic
   * links, and with COMMAND_INVALID for something that is no complete tar. What came before it then stays.
   */
  writeTar(path: string, tar: AsyncIterable<Uint8Array>, options?: FileOptions): Promise<void>;
  /** Writes the whole file in one step, and creates missing parent directories. A replaced file keeps its mode. */
  write(path: string, data: string | Uint8Array | AsyncIterable<Uint8Array>, options?: FileOptions): Promise<void>;
  /**
   * Lists a directory, ordered by the bytes of the names. With `*`, `?`, `[a-z]` or `**` in the path, lists everything
   * that matches; `**` stands for any number of directories. As in a shell, a leading dot of a name has to be written.
   * Symbolic links that match are not followed, and unreadable directories are skipped.
   */
  list(path: string, options?: ListOptions): Promise<FileInfo[]>;
  /** Describes the path itself. A symbolic link at the path is not followed. */
  stat(path: string, options?: FileOptions): Promise<FileInfo>;
  /** Makes a directory and its missing parents. A directory that exists already is no error. */
  mkdir(path: string, options?: FileOptions): Promise<void>;
  /** Renames within one file system, and creates missing parents of the new name. A file with that name is replaced. */
  rename(from: string, to: string, options?: FileOptions): Promise<void>;
  /** Sets the permission bits, such as 0o755. */
  chmod(path: string, mode: number, options?: FileOptions): Promise<void>;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string, options?: RemoveOptions): Promise<void>;
  /**
   * Copies a local file or directory into the sandbox, with its permission bits, in bounded memory. Files are written
   * as by `write`. Directories are merged, symbolic links stay links, and other kinds of files reject with FILE_DENIED.
   */
  upload(localPath: string, path: string, options?: TransferOptions): Promise<void>;
  /**
   * Copies a file or directory of the sandbox to this machine, with its permission bits (not setuid, setgid and
   * sticky), in bounded memory. A local file is replaced when its copy is complete; devices and FIFOs are written to,
   * and a symbolic link's target is replaced. Nothing is written outside of the local directory, whatever names and
   * links the sandbox has.
   */
  download(path: string, localPath: string, options?: TransferOptions): Promise<void>;
}
