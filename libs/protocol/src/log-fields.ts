import { ATTRIBUTES } from './telemetry.ts';

/** Names of the fields of log lines that are no attributes, with their meanings. docs/telemetry.md lists them. */
export const LOG_FIELDS = {
  err: 'the error: `type`, `message`, `stack`, and the `code` and `context` of one of ours',
  reason: 'why something happened, as a Result would say it',
  problem: 'what is wrong, as a sentence for the operator',
  timings: 'the `timings` of the Result',
  kind: 'what was signed: `payload`, `file`, `cancel`, …',
  epoch: 'the number of the shell in its session',
  sandbox: 'the sandbox, where it is no container',
  'other.host.id': 'a host other than the one that writes the line',
  sessions: 'how many sessions the host has',
  adoptable: 'how many of them have a living shell',
  endedSessions: 'how many sessions ended while the host drained',
  leftSessions: 'how many sessions another process of the host goes on with',
  endedCommands: 'how many waiting commands were ended',
  isForOthers: 'whether another host can take the session',
  differing: 'the fields in which a job differs from its spec',
  slots: 'how many sessions, or calls of tools, the host takes at a time',
  decision: 'what rules would have decided',
  rules: 'the rules that matched',
  files: 'the files of rules',
  digest: 'the digest of the rules',
  revision: 'the revision of the configuration of the fleet',
  appliedBy: 'who applied it',
  keyId: 'the id of a seal key',
  anchored: 'the number of the record of the audit that was anchored last',
  warnings: 'what is odd about the redaction rules of a session',
  message: 'a message of the keeper',
  factor: 'by how much more memory the host now keeps free',
  bytes: 'how much a container has written',
  images: 'the images that were removed',
  pauseMs: 'after how many milliseconds it is tried again',
  removed: 'how many sandboxes were removed',
  setting: 'a setting of Redis',
  'server.address': 'the host that a session asked its proxy for, or the address on which the worker listens',
  'server.port': 'the port of that address',
  unwritten: 'how many requests had no line of their own since the last line',
  question: 'the id of a question to a person',
  webhook: 'the host of the webhook',
  attempts: 'how often the question was sent',
  failures: 'how many requests to the webhook failed since the last line',
  batch: 'the name of a detached batch',
  submission: 'the id under which the batch was submitted',
  submittedBy: 'who submitted it, as its process said',
  stoppedBy: 'what ended it before its last task',
  tools: 'the tools that the host offers',
  module: 'the module of a tool',
  modules: 'the modules that export a tool of the same name',
  job: 'the id of the job of a tool call',
  platform: 'the operating system',
  processes: 'how many processes were ended',
  'process.pid': 'the process id of a process that ended',
  signal: 'the signal that ended it',
  sink: 'the sink: `log` or `audit`',
  dropped: 'how many lines the sink will never get, or how many records of the audit were removed before their time',
} as const;

/** Name of a field that a log line may have, beside those that every line has. */
export type LogField = keyof typeof LOG_FIELDS | (typeof ATTRIBUTES)[keyof typeof ATTRIBUTES];

/** Names that every line of a log has: its level, its time, the process, its machine and its event. */
export const LOG_LINE_FIELDS = ['level', 'time', 'pid', 'hostname', 'msg'] as const;

/** Tells whether a log line may have the field. */
export function isLogField(name: string): boolean {
  const names: readonly string[] = [...LOG_LINE_FIELDS, ...Object.keys(LOG_FIELDS), ...Object.values(ATTRIBUTES)];
  return names.includes(name);
}
