import type { ApprovalPolicy, AskByDefault } from './approval.ts';
import type { ExecutionPolicy, PolicyName } from './execution-policy.ts';
import type { PrefixRule } from './prefix-rule.ts';
import type { RedactionRule } from './redaction.ts';
import type { SandboxOptions } from './sandbox-options.ts';

/** How a session is set up. `undefined` is the same as absent, and unknown fields are rejected. */
export interface SessionSpec {
  /**
   * Where the shell runs: the name of a policy, or `{ type: name, … }` with its options.
   * @default 'docker'
   */
  policy?: PolicyName | ExecutionPolicy | undefined;
  /**
   * Container image, `registry/name:tag` or `name@sha256:digest`. Refused under the policy `host`.
   * @default the image of the host
   * @limit 256 characters
   */
  image?: string | undefined;
  /**
   * Variables of the shell.
   * @default none
   * @limit names match `[A-Za-z_][A-Za-z0-9_]*`; a value at most 131,072 bytes, all of them 1 MiB
   */
  env?: Record<string, string> | undefined;
  /**
   * Directory in which a fresh shell starts; by default the `target` of a `workspace`. `image`: the image's `WORKDIR`,
   * under the policy `docker`.
   * @default /workspace
   * @limit an absolute path of at most 4,096 bytes
   */
  cwd?: string | undefined;
  /**
   * Directory of the host that is mounted at `target`, which the operator must allow. If it is missing below a
   * directory that the operator lists, it is created. Read-only, or at another place than `/workspace`, only under the
   * policy `docker`.
   * @default an empty directory that ends with the sandbox; writable, and mounted at /workspace
   * @limit absolute paths of at most 4,096 bytes; `target` is no directory of the system or the keeper
   */
  workspace?: string | { path: string; target?: string | undefined; readOnly?: boolean | undefined } | undefined;
  /**
   * Program and arguments of the shell.
   * @default chosen by the host
   * @limit 1 to 64 words
   */
  shell?: string[] | undefined;
  /**
   * User of the shell: a name or uid, with `:group` if wanted. Refused under the policy `host`.
   * @default 1000:1000
   */
  user?: string | undefined;
  /**
   * Scripts that every fresh shell runs before any command, in order. When one fails, so does every command.
   * @default none
   * @limit 64 scripts of 1 MiB each
   */
  startupCommands?: string[] | undefined;
  /**
   * Scripts that run, in order, before a shell is ended at a close, an idle timeout or its greatest age.
   * @default none
   * @limit 64 scripts of 1 MiB each
   */
  shutdownCommands?: string[] | undefined;
  /**
   * Wall clock limit in ms of a command that has no `timeoutMs` of its own, and of each startup and shutdown command.
   * @default 600,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  commandTimeoutMs?: number | undefined;
  /**
   * Limit in ms for opening the sandbox and running the startup commands. Time in the queue does not count.
   * @default 30,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  startupTimeoutMs?: number | undefined;
  /**
   * Limit in ms for ending the shell at close or restart.
   * @default 10,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  terminationTimeoutMs?: number | undefined;
  /** Bounds of the output of each command. */
  output?: OutputOptions | undefined;
  /**
   * Rules that replace or block parts of the output.
   * @default none
   * @limit 64 rules
   */
  redaction?: RedactionRule[] | undefined;
  /**
   * Whether tokens of well-known formats are replaced in output. With `false`, only `secrets` and `redaction` apply, so
   * a patch with a fixture in it arrives unchanged; the operator must allow that (`allow.redactFormats`).
   * @default true
   */
  redactFormats?: boolean | undefined;
  /**
   * Variables of the shell whose values are redacted in every encoding. A name must not be in `env` as well.
   * @default none
   * @limit a value at most 16,384 bytes, all of them 1 MiB
   */
  secrets?: Record<string, string> | undefined;
  /** What the sandbox allows. */
  sandbox?: SandboxOptions | undefined;
  /**
   * Which commands wait for the approval of a person. Absent: only those that a `prompt` rule of the operator names.
   * @default none asks
   */
  approval?: ApprovalPolicy | undefined;
  /**
   * Which commands `approval` asks about when no rule decides: scripts that cannot be read (`unreadable`), or every
   * command of a `read-only` or `workspace-write` sandbox (`sandboxed`). With `sandboxed`, `unless-trusted` asks
   * always, and `never` and `on-failure` never.
   * @default 'unreadable'
   * @limit only with `approval`
   */
  askByDefault?: AskByDefault | undefined;
  /**
   * Time in ms that a question waits for an answer. Then its command ends as `error` (APPROVAL_EXPIRED).
   * @default 600,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  approvalTimeoutMs?: number | undefined;
  /**
   * Rules of the session. They only narrow the operator's rules: an `allow` answers a question that `approval` would
   * ask.
   * @default none
   * @limit 256 rules
   */
  execPolicy?: PrefixRule[] | undefined;
  /**
   * Resources of the sandbox.
   * @default those of its policy
   */
  limits?: LimitOptions | undefined;
  /**
   * Time in ms after which an idle session gives up shell and slot; its next command gets a fresh shell.
   * @default 1,800,000
   * @limit 1 to 86,400,000 ms (a day)
   */
  idleTimeoutMs?: number | undefined;
  /**
   * Age in ms at which a shell is ended; the next command gets a fresh one.
   * @default 86,400,000
   * @limit 1 to 2,592,000,000 ms (30 days)
   */
  maxLifetimeMs?: number | undefined;
  /**
   * When the host is lost, `fail` ends the waiting commands as `error`, and `recreate` runs them in a fresh shell
   * elsewhere.
   * @default 'fail'
   */
  onHostLoss?: 'fail' | 'recreate' | undefined;
  /**
   * Time in ms that a lost host has to come back before `onHostLoss` applies.
   * @default 60,000
   * @limit 0 to 3,600,000 ms (an hour)
   */
  hostGraceMs?: number | undefined;
  /**
   * Whether the container stays for a post-mortem, stopped, when the session ends after its last command failed
   * (`failure`, `timeout`, `lost` or `error`), or when its shell is lost. The operator limits how many stay, and for
   * how long. Only under the policy `docker`.
   * @default false
   */
  keepOnFailure?: boolean | undefined;
  /**
   * Delay in the queue of the tenant's sessions: the session waits as if it had come so many minutes later.
   * @default 0
   * @limit 0 to 1,000
   */
  priority?: number | undefined;
  /**
   * Names and values by which sessions are listed, not placed. They are stored in clear.
   * @default none
   * @limit 32 labels; names and values of 1 to 63 of `A-Z a-z 0-9 . _ / -`, the first and the last a letter or digit
   */
  labels?: Record<string, string> | undefined;
  /**
   * Labels that its host must have, such as `{ gpu: 'yes' }`: all of them, with these values. The operator of a host
   * gives it labels. They are stored in clear.
   * @default none
   * @limit 8 labels; names and values as those of `labels`
   */
  hosts?: Record<string, string> | undefined;
  /**
   * Id of a session of the tenant on whose host this one would like to be. For 2 s from when it is next, it is left to
   * that host; then any host takes it. The id is stored in clear.
   * @default none
   */
  near?: string | undefined;
}

/**
 * Bounds of the output of each command of a session. Output that is cut is counted and marked, and the full log has it.
 */
export interface OutputOptions {
  /**
   * Bytes of each stream in the Result.
   * @default 262,144
   * @limit 1 to 1,048,576 bytes (1 MiB)
   */
  maxBytes?: number | undefined;
  /**
   * Lines of each stream in the Result.
   * @default 10,000
   * @limit 1 to 1,000,000 lines
   */
  maxLines?: number | undefined;
  /**
   * The part of a longer output that the Result keeps.
   * @default 'head-tail'
   */
  keep?: 'head' | 'tail' | 'head-tail' | undefined;
  /**
   * Output bytes of each command that the session's stream carries. Further bytes are counted, and are in the full log.
   * @default 8,388,608
   * @limit 1 to 67,108,864 bytes (64 MiB)
   */
  streamBytes?: number | undefined;
}

/**
 * Resources of a sandbox. A host refuses what it cannot enforce. Only the policies `docker` and `kubernetes` have
 * defaults.
 */
export interface LimitOptions {
  /**
   * Memory of all processes in bytes, including the pages of `/tmp` and `/dev/shm`.
   * @default 536,870,912
   * @limit 33,554,432 (32 MiB) to 2^50 bytes
   */
  memoryBytes?: number | undefined;
  /**
   * Processors that the sandbox may keep busy; fractions are allowed.
   * @default 1
   * @limit 0.01 to 1,024
   */
  cpus?: number | undefined;
  /**
   * Processes and threads at once. Under the policy `kubernetes` the kubelet bounds them, and no default applies.
   * @default 256
   * @limit 16 to 65,536
   */
  pids?: number | undefined;
  /**
   * Processor time in seconds of each process. Only under the policy `host`.
   * @default no limit
   * @limit 1 to 2,147,483,647 s
   */
  cpuTimeSeconds?: number | undefined;
  /**
   * Bytes of the sandbox's files. Only on a host whose storage driver has quotas, and refused under the policy `host`.
   * Under `kubernetes` it is the Pod's ephemeral storage, and a Pod that exceeds it is evicted.
   * @default no quota; the host ends what fills its disk
   * @limit 1 to 2^50 bytes
   */
  diskBytes?: number | undefined;
  /**
   * Bytes of each written file. A longer write fails, and ends a program that does not handle SIGXFSZ.
   * @default no limit
   * @limit 16,777,216 (16 MiB) to 2^50 bytes
   */
  fileSizeBytes?: number | undefined;
  /**
   * Other resources of a Kubernetes cluster, such as `{ 'nvidia.com/gpu': 1 }`, which the operator must allow. Only
   * under the policy `kubernetes`.
   * @default none
   * @limit 8 resources of 1 to 1,024 each
   */
  resources?: Record<string, number> | undefined;
}
