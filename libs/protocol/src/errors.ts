import { z } from 'zod';
import { toFieldIssues } from './field-issues.ts';
import { toIssueText } from './issue-text.ts';

/** Every error code: whether to retry, and the caller's next step. A test compares docs/errors.md with it. */
export const ERRORS = {
  COMMAND_INVALID: { retryable: false, hint: 'Fix the request; context.issues lists the fields and their limits.' },
  SESSION_SPEC_INVALID: {
    retryable: false,
    hint: 'Fix the session spec; context.issues lists the fields and their limits.',
  },
  RULES_INVALID: {
    retryable: false,
    hint: 'Fix the rules; context.issues names each rule and the example that it fails.',
  },
  SESSION_CLOSED: { retryable: false, hint: 'Open a new session: fleet.session(id) opens this id again.' },
  SESSION_NOT_FOUND: { retryable: false, hint: 'Open a new session.' },
  SESSION_CONFLICT: {
    retryable: false,
    hint: 'The live session has another spec; close it first, or attach without a spec.',
  },
  SESSION_LOST: { retryable: false, hint: 'The state of the shell is gone; submit again if that is safe.' },
  SESSION_START_FAILED: {
    retryable: true,
    hint: 'See the message: a startup command failed, or the image has no shell.',
  },
  IDEMPOTENCY_CONFLICT: { retryable: false, hint: 'The key was used for another payload; use a new key.' },
  BATCH_TOO_LARGE: {
    retryable: false,
    hint: 'Put large files into the image, or let `setup` fetch them; or run the batch without --detach.',
  },
  BATCH_NOT_FOUND: {
    retryable: false,
    hint: 'It was removed, or its retention is over; `shellfleet batch ls` lists the batches of the tenant.',
  },
  INTERCEPTOR_FAILED: {
    retryable: false,
    hint: 'An interceptor of this process refused the submit or failed; see the cause. context.accepted is true when the command runs all the same.',
  },
  APPROVAL_EXPIRED: {
    retryable: true,
    hint: 'Nobody answered in time; submit the command again, or raise approvalTimeoutMs.',
  },
  APPROVAL_NOT_FOUND: {
    retryable: false,
    hint: 'It was answered, has expired, or its command is gone; `shellfleet approvals ls` lists those that wait.',
  },
  UNAUTHORIZED: {
    retryable: false,
    hint: 'No known key of the tenant signed exactly this, or it has expired; set SHELLFLEET_SIGNING_KEY. The audit of the host has the details.',
  },
  AUDIT_UNAVAILABLE: {
    retryable: true,
    hint: 'The host cannot write its audit, so it decides nothing; free its disk, then submit the command again.',
  },
  QUEUE_UNAVAILABLE: {
    retryable: true,
    hint: 'Redis is out of reach or full; the same idempotency key makes a retry safe.',
  },
  ISSUER_UNAVAILABLE: {
    retryable: true,
    hint: 'The server cannot read the keys of the OpenID Connect issuer; API keys still work.',
  },
  FLEET_CONFLICT: {
    retryable: false,
    hint: 'Another fleet has this namespace in this Redis; correct SHELLFLEET_REDIS_URL or SHELLFLEET_NAMESPACE.',
  },
  QUOTA_EXCEEDED: { retryable: true, hint: 'The message has the quota and what makes room; repeat the call then.' },
  IMAGE_UNAVAILABLE: { retryable: false, hint: 'Choose an image that the host has or can pull.' },
  DOCKER_UNAVAILABLE: { retryable: true, hint: 'Start the Docker engine on the host; `shellfleet doctor` says how.' },
  SANDBOX_UNAVAILABLE: {
    retryable: false,
    hint: 'The host cannot enforce what was asked; ask for less, or use another host.',
  },
  CONTAINER_LOST: { retryable: false, hint: 'The container is gone; the next command gets a new shell.' },
  SHELL_UNRESPONSIVE: { retryable: false, hint: 'The shell was replaced; the next command gets a new one.' },
  HOST_UNREACHABLE: {
    retryable: true,
    hint: 'Its sessions and logs are there again when it is back; `shellfleet hosts ls` shows who is up.',
  },
  LEASE_LOST: { retryable: false, hint: 'Another host owns the session now.' },
  RESULT_EXPIRED: {
    retryable: false,
    hint: 'What has ended is kept for 24 hours (SHELLFLEET_RETENTION), or less when Redis needs the room.',
  },
  LOG_EXPIRED: {
    retryable: false,
    hint: 'Logs are kept within a quota and an age; read them earlier, or raise those.',
  },
  FILE_NOT_FOUND: { retryable: false, hint: 'Check the path.' },
  FILE_IS_DIRECTORY: { retryable: false, hint: 'Name a file, or list the directory.' },
  FILE_TOO_LARGE: { retryable: false, hint: 'Move it in parts, or compress it in the sandbox first.' },
  FILE_DENIED: { retryable: false, hint: 'The user of the sandbox may not do that there.' },
  RESTART_DENIED: { retryable: false, hint: 'A rule or a person denied the restart; the message has the reason.' },
  PATH_INVALID: { retryable: false, hint: 'Use an absolute path inside the sandbox.' },
  STDIN_INCOMPLETE: {
    retryable: false,
    hint: 'The submitter went away before the end of its stdin, so the command was stopped; submit it again if that is safe.',
  },
  SEAL_KEY_UNKNOWN: {
    retryable: false,
    hint: 'Give this process the key that sealed the value (SHELLFLEET_SEAL_KEY).',
  },
  DURABLE_UNSUPPORTED: { retryable: false, hint: 'Turn on appendfsync always, or use Redis 7.2 or newer.' },
  REDIS_UNSUITABLE: { retryable: false, hint: 'Change the named setting of Redis, or use another Redis.' },
  HOST_ID_TAKEN: {
    retryable: false,
    hint: 'Stop the other worker with this host id, or choose another id (SHELLFLEET_HOST_ID).',
  },
  RETENTION_CONFLICT: {
    retryable: false,
    hint: 'Give every worker of the fleet the same SHELLFLEET_RETENTION; to change it, stop them all first.',
  },
  PROTOCOL_MISMATCH: { retryable: false, hint: 'Upgrade the older process; context has both versions.' },
  INTERNAL: { retryable: false, hint: 'A bug of ours; please report it.' },
} as const satisfies Record<string, { retryable: boolean; hint: string }>;

export type ErrorCode = keyof typeof ERRORS;

const BRAND = Symbol.for('shellfleet.error');

/** A failure of Shellfleet itself. The failure of a command is data (an Outcome), never this error. */
export class ShellfleetError extends Error {
  readonly [BRAND] = true;
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly context: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    context: Record<string, unknown> = {},
    options?: { cause?: unknown; retryable?: boolean },
  ) {
    super(message, options);
    this.name = 'ShellfleetError';
    this.code = code;
    this.retryable = options?.retryable ?? ERRORS[code].retryable;
    this.context = context;
  }

  get hint(): string {
    return ERRORS[this.code].hint;
  }

  toJSON(): WireError {
    return { code: this.code, message: this.message, retryable: this.retryable, context: this.context };
  }
}

/** An error as data, without a stack. */
export interface WireError {
  /** A code of docs/errors.md, or a code that only newer processes know. */
  code: string;
  /** A sentence for a person, with the next step. */
  message: string;
  /** Whether the same call may succeed later. */
  retryable: boolean;
  /** Details for a program. Their form depends on the code. */
  context?: unknown;
}

export const wireErrorSchema: z.ZodType<WireError> = z
  .object({
    code: z.string().meta({ description: 'A code of docs/errors.md, or a code that only newer processes know.' }),
    message: z.string().meta({ description: 'A sentence for a person, with the next step.' }),
    retryable: z.boolean().meta({ description: 'Whether the same call may succeed later.' }),
    context: z.unknown().optional().meta({ description: 'Details for a program. Their form depends on the code.' }),
  })
  .meta({ id: 'WireError', description: 'An error as data, without a stack.' });

/** Converts a received error into one that can be thrown. An unknown code, from a newer process, becomes INTERNAL. */
export function fromWireError({ code, message, retryable, context }: WireError): ShellfleetError {
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'INTERNAL';
  const isObject = typeof context === 'object' && context !== null && !Array.isArray(context);
  return new ShellfleetError(known, message, isObject ? (context as Record<string, unknown>) : {}, { retryable });
}

export function isShellfleetError(error: unknown): error is ShellfleetError {
  return typeof error === 'object' && error !== null && BRAND in error;
}

/**
 * Returns a ShellfleetError unchanged, and wraps any other error as `INTERNAL`, with that error as the cause. For every
 * boundary of a process.
 */
export function ensureShellfleetError(thrown: unknown): ShellfleetError {
  const error = firstError(thrown);
  if (isShellfleetError(error)) return error;
  return new ShellfleetError('INTERNAL', messageOf(error), {}, { cause: error });
}

/** Returns the error that was thrown first, of one that others may have followed while resources were closed. */
export function firstError(error: unknown): unknown {
  // Node 22 has no class of this name. What is compiled for it gives its errors the name.
  const isOfSeveral = error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error;
  return isOfSeveral ? firstError(error.suppressed) : error;
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  try {
    return String(error);
  } catch {
    return 'A value that has no text was thrown.'; // an object without a prototype
  }
}

const MOST_ISSUES = 32;

/** Parses with a schema. Throws one ShellfleetError that lists the invalid fields, up to MOST_ISSUES. */
export function parseOrThrow<T extends z.ZodType>(
  schema: T,
  value: unknown,
  code: ErrorCode,
  what: string,
): z.infer<T> {
  const parsed = schema.safeParse(value, { error: toIssueText });
  if (parsed.success) return parsed.data;
  const all = parsed.error.issues.flatMap(toFieldIssues);
  const issues = all.slice(0, MOST_ISSUES);
  const more = all.length > issues.length ? `; and ${all.length - issues.length} more` : '';
  const list = issues
    .map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`))
    .join('; ');
  throw new ShellfleetError(code, `${what} is not valid: ${list}${more}`, { issues });
}
