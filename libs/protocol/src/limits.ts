/** Limits on data from producers, in bytes and milliseconds. Every rejection names the limit. */
export const LIMITS = {
  idChars: 128,
  scriptBytes: 1_048_576,
  /** The largest stdin that is stored with its command. The submitter streams longer ones. */
  stdinBytes: 1_048_576,
  /** Unread data of an open stdin: its most bytes, its most chunks, and the bytes of its largest chunk. */
  inputUnreadBytes: 4_194_304,
  inputUnreadChunks: 4_096,
  inputChunkBytes: 262_144,
  /** The most that one call writes to an open stdin. */
  inputWriteBytes: 1_048_576,
  /** A submitter that streams a stdin counts as gone if it has not renewed its lease for this long. */
  inputLeaseMs: 3_000,
  filePartBytes: 1_048_576,
  envValueBytes: 131_072,
  envTotalBytes: 1_048_576,
  pathBytes: 4_096,
  timeoutMs: 86_400_000,
  idempotencyKeyChars: 256,
  queuedPerSession: 100_000,
  /** Bytes of the sealed scripts, variables, stdins and file parts that wait in one session. */
  queuedBytesPerSession: 268_435_456,
  /** The largest payload that a wake-up carries. The host reads larger payloads from the mailbox. */
  wakeUpPayloadBytes: 16_384,
  /** Most commands of one Fleet that have no Result yet, and most characters of their payloads. */
  producerPending: 200_000,
  producerPendingChars: 268_435_456,
  /** How often a command with `retry: 'idempotent'` is started in all. */
  idempotentStarts: 3,
  /** Pending questions of one tenant, unless the operator sets another number. */
  pendingApprovals: 10_000,
  /** Labels of one session. */
  labels: 32,
  /** Labels that a session may ask of its host. */
  neededLabels: 8,
  /** Characters of a placement class, with the longest labels. */
  placementClassChars: 1_200,
  startupCommands: 64,
  /** Resources of a cluster that one session may ask for, and the most of one. */
  resources: 8,
  resourceCount: 1_024,
  /** The most closed sessions that a fleet lists. Older ones are still found by their ids. */
  closedSessions: 100_000,
  /** Default of the retention of finished commands, their output and their idempotency keys. */
  defaultRetentionMs: 86_400_000,
  /** The most that one session's stream may hold before its oldest finished commands are trimmed. */
  sessionStreamBytes: 67_108_864,
  streamBytes: 67_108_864,
  /** Bytes of each text of a Result. */
  outputBytes: 1_048_576,
  /** Bytes of a Result as JSON. Texts that became larger by escaping are cut again to fit. */
  resultBytes: 4_194_304,
  outputLines: 1_000_000,
  /** The smallest `fileSizeBytes` that a session may ask for. The keeper's own files are no larger. */
  leastFileSizeBytes: 16_777_216,
  /** Arguments and output of a tool call, as JSON. */
  toolArgumentBytes: 4_194_304,
  toolOutputBytes: 33_554_432,
  toolTimeoutMs: 30_000,
  /** A tool that no host has offered for this long is unknown, so a call of it fails instead of waiting. */
  toolKnownMs: 86_400_000,
  toolMemoryBytes: 536_870_912,
  /** Tasks and files of a detached batch together, sealed. */
  detachedBatchBytes: 67_108_864,
  /** Outputs of one run of a task of a detached batch, sealed. */
  detachedTaskOutputBytes: 4_194_304,
  /** Outputs and result lines of a detached batch, sealed. Outputs are refused, and lines alone end the batch. */
  detachedOutputBytes: 1_073_741_824,
  /** Detached batches of one tenant, and the bytes of all that is stored of them, sealed. */
  detachedBatches: 1_000,
  detachedTenantBytes: 4_294_967_296,
  /** Characters of the name of a detached batch. */
  batchNameChars: 64,
  secretBytes: 16_384,
  redactionRules: 64,
  redactionPatternChars: 1_000,
} as const;

/** Variables that would change how the shell itself starts or frames its commands. */
export const DENIED_ENV_NAMES = [
  'BASH_ENV',
  'ENV',
  'IFS',
  'LD_PRELOAD',
  'LD_AUDIT',
  'PROMPT_COMMAND',
  'PS4',
  'SHELLOPTS',
  'BASHOPTS',
];
