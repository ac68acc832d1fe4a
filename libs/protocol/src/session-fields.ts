import { z } from 'zod';
import { ASK_BY_DEFAULT, approvalPolicySchema } from './approval.ts';
import { DEFAULTS } from './defaults.ts';
import { envSchema, secretsSchema } from './env.ts';
import { executionPolicySchema } from './execution-policy.ts';
import { durationSchema, scriptSchema, shellTextSchema, UP_TO_A_DAY, withoutSign } from './field-schemas.ts';
import { sessionIdSchema } from './ids.ts';
import { imageNameSchema } from './image-name.ts';
import { labelsSchema, neededLabelsSchema } from './labels.ts';
import { LIMITS } from './limits.ts';
import { sessionRulesSchema } from './prefix-rule.ts';
import { redactionRulesSchema } from './redaction.ts';
import { sandboxOptionsSchema } from './sandbox-options.ts';
import { limitsSchema, outputSchema } from './session-limits.ts';
import { workspaceSchema } from './workspace.ts';

const userSchema = z
  .string('must be a string')
  .min(1, { error: 'must be a non-empty string when provided', abort: true })
  .regex(
    /^(?:[a-z_][a-z0-9_-]{0,31}|[0-9]{1,9})(?::(?:[a-z_][a-z0-9_-]{0,31}|[0-9]{1,9}))?$/,
    'is not a user (name or uid, with :group if wanted)',
  );

/** Minutes by which a session waits as if it had come later than it did, among the sessions of its tenant. */
export const prioritySchema = z
  .number('must be a number')
  .int('must be a whole number')
  .min(0, 'must be 0 to 1000')
  .max(1_000, 'must be 0 to 1000')
  .overwrite(withoutSign);

const scriptsSchema = z
  .array(scriptSchema, 'must be a list of scripts')
  .max(LIMITS.startupCommands, `must hold at most ${LIMITS.startupCommands} scripts`);

const { session: defaults } = DEFAULTS;

/** A `cwd` that stands for the directory that the image names. */
export const IMAGE_CWD = 'image';

/** The fields of a spec, each by itself. `sessionSpecSchema` checks them together. */
export const sessionFieldsSchema = z.strictObject({
  policy: executionPolicySchema
    .default(() => executionPolicySchema.parse(defaults.policy))
    .meta({
      description: 'Where the shell runs: the name of a policy, or `{ type: name, … }` with its options.',
      otherwise: "'docker'",
      flag: 'where it runs',
    }),
  image: imageNameSchema.optional().meta({
    description: 'Container image, `registry/name:tag` or `name@sha256:digest`. Refused under the policy `host`.',
    otherwise: 'the image of the host',
    limit: '256 characters',
    flag: 'container image',
  }),
  env: envSchema.default(defaults.env).meta({
    description: 'Variables of the shell.',
    limit: 'names match `[A-Za-z_][A-Za-z0-9_]*`; a value at most 131,072 bytes, all of them 1 MiB',
    flag: 'variable of its shell',
  }),
  cwd: shellTextSchema(LIMITS.pathBytes)
    .refine((path) => path.startsWith('/') || path === IMAGE_CWD, 'must be an absolute path')
    .optional()
    .meta({
      description:
        'Directory in which a fresh shell starts; by default the `target` of a `workspace`. `image`: the ' +
        "image's `WORKDIR`, under the policy `docker`.",
      otherwise: '/workspace',
      limit: 'an absolute path of at most 4,096 bytes',
    }),
  workspace: workspaceSchema.optional().meta({
    description:
      'Directory of the host that is mounted at `target`, which the operator must allow. If it is missing ' +
      'below a directory that the operator lists, it is created. Read-only, or at another place than ' +
      '`/workspace`, only under the policy `docker`.',
    otherwise: 'an empty directory that ends with the sandbox; writable, and mounted at /workspace',
    limit: 'absolute paths of at most 4,096 bytes; `target` is no directory of the system or the keeper',
    flag: 'directory of the host: PATH[:TARGET][:ro]; its place is /workspace',
  }),
  shell: z
    .array(
      shellTextSchema(LIMITS.pathBytes).min(1, 'must not be empty'),
      'must be a list of words: the program and its arguments',
    )
    .min(1, 'must contain at least one argument')
    .max(64, 'must be at most 64 words')
    .optional()
    .meta({
      description: 'Program and arguments of the shell.',
      otherwise: 'chosen by the host',
      limit: '1 to 64 words',
    }),
  user: userSchema.optional().meta({
    description: 'User of the shell: a name or uid, with `:group` if wanted. Refused under the policy `host`.',
    otherwise: defaults.user,
    flag: 'name or uid, :group if wanted',
  }),
  startupCommands: scriptsSchema.default([]).meta({
    description:
      'Scripts that every fresh shell runs before any command, in order. When one fails, so does every command.',
    limit: '64 scripts of 1 MiB each',
    flag: 'runs in every fresh shell',
  }),
  shutdownCommands: scriptsSchema.default([]).meta({
    description: 'Scripts that run, in order, before a shell is ended at a close, an idle timeout or its greatest age.',
    limit: '64 scripts of 1 MiB each',
    flag: 'runs before its end',
  }),
  commandTimeoutMs: durationSchema()
    .default(defaults.commandTimeoutMs)
    .meta({
      description:
        'Wall clock limit in ms of a command that has no `timeoutMs` of its own, and of each startup and ' +
        'shutdown command.',
      limit: UP_TO_A_DAY,
    }),
  startupTimeoutMs: durationSchema().default(defaults.startupTimeoutMs).meta({
    description:
      'Limit in ms for opening the sandbox and running the startup commands. Time in the queue does not count.',
    limit: UP_TO_A_DAY,
  }),
  terminationTimeoutMs: durationSchema()
    .default(defaults.terminationTimeoutMs)
    .meta({ description: 'Limit in ms for ending the shell at close or restart.', limit: UP_TO_A_DAY }),
  output: outputSchema.default(DEFAULTS.output).meta({ description: 'Bounds of the output of each command.' }),
  redaction: redactionRulesSchema.default([]).meta({
    description: 'Rules that replace or block parts of the output.',
    limit: '64 rules',
    flag: 'what it never shows: email:mask',
  }),
  redactFormats: z
    .boolean('must be true or false')
    .default(defaults.redactFormats)
    .meta({
      description:
        'Whether tokens of well-known formats are replaced in output. With `false`, only `secrets` and ' +
        '`redaction` apply, so a patch with a fixture in it arrives unchanged; the operator must allow that ' +
        '(`allow.redactFormats`).',
      flag: 'print tokens of well-known formats as they are',
    }),
  secrets: secretsSchema.default(defaults.secrets).meta({
    description:
      'Variables of the shell whose values are redacted in every encoding. A name must not be in `env` as well.',
    limit: 'a value at most 16,384 bytes, all of them 1 MiB',
    flag: 'variable of ours that it gets and never shows',
  }),
  sandbox: sandboxOptionsSchema.optional().meta({ description: 'What the sandbox allows.' }),
  approval: approvalPolicySchema.optional().meta({
    description:
      'Which commands wait for the approval of a person. Absent: only those that a `prompt` rule of the ' +
      'operator names.',
    otherwise: 'none asks',
    flag: 'which commands wait for a person',
  }),
  askByDefault: z
    .enum(ASK_BY_DEFAULT, "must be 'unreadable' or 'sandboxed'")
    .optional()
    .meta({
      description:
        'Which commands `approval` asks about when no rule decides: scripts that cannot be read ' +
        '(`unreadable`), or every command of a `read-only` or `workspace-write` sandbox (`sandboxed`). With ' +
        '`sandboxed`, `unless-trusted` asks always, and `never` and `on-failure` never.',
      otherwise: "'unreadable'",
      limit: 'only with `approval`',
      flag: 'which of them when no rule decides',
    }),
  approvalTimeoutMs: durationSchema().default(defaults.approvalTimeoutMs).meta({
    description: 'Time in ms that a question waits for an answer. Then its command ends as `error` (APPROVAL_EXPIRED).',
    limit: UP_TO_A_DAY,
  }),
  execPolicy: sessionRulesSchema.optional().meta({
    description:
      "Rules of the session. They only narrow the operator's rules: an `allow` answers a question that " +
      '`approval` would ask.',
    otherwise: 'none',
    limit: '256 rules',
  }),
  limits: limitsSchema.default({}).meta({ description: 'Resources of the sandbox.', otherwise: 'those of its policy' }),
  idleTimeoutMs: durationSchema().default(defaults.idleTimeoutMs).meta({
    description: 'Time in ms after which an idle session gives up shell and slot; its next command gets a fresh shell.',
    limit: UP_TO_A_DAY,
    flag: 'gives up its shell when idle: 5m',
  }),
  maxLifetimeMs: durationSchema(1, 30 * 86_400_000)
    .default(defaults.maxLifetimeMs)
    .meta({
      description: 'Age in ms at which a shell is ended; the next command gets a fresh one.',
      limit: '1 to 2,592,000,000 ms (30 days)',
    }),
  onHostLoss: z
    .enum(['fail', 'recreate'], "must be 'fail' or 'recreate'")
    .default(defaults.onHostLoss)
    .meta({
      description:
        'When the host is lost, `fail` ends the waiting commands as `error`, and `recreate` runs them in a ' +
        'fresh shell elsewhere.',
    }),
  hostGraceMs: durationSchema(0, 3_600_000).default(defaults.hostGraceMs).meta({
    description: 'Time in ms that a lost host has to come back before `onHostLoss` applies.',
    limit: '0 to 3,600,000 ms (an hour)',
  }),
  keepOnFailure: z
    .boolean('must be true or false')
    .default(defaults.keepOnFailure)
    .meta({
      description:
        'Whether the container stays for a post-mortem, stopped, when the session ends after its last ' +
        'command failed (`failure`, `timeout`, `lost` or `error`), or when its shell is lost. The operator ' +
        'limits how many stay, and for how long. Only under the policy `docker`.',
    }),
  priority: prioritySchema.default(defaults.priority).meta({
    description:
      "Delay in the queue of the tenant's sessions: the session waits as if it had come so many minutes " + 'later.',
    limit: '0 to 1,000',
  }),
  labels: labelsSchema.default(defaults.labels).meta({
    description: 'Names and values by which sessions are listed, not placed. They are stored in clear.',
    limit: '32 labels; names and values of 1 to 63 of `A-Z a-z 0-9 . _ / -`, the first and the last a letter or digit',
    flag: 'label, to find it by',
  }),
  hosts: neededLabelsSchema.default(defaults.hosts).meta({
    description:
      "Labels that its host must have, such as `{ gpu: 'yes' }`: all of them, with these values. The " +
      'operator of a host gives it labels. They are stored in clear.',
    limit: '8 labels; names and values as those of `labels`',
    flag: 'label that its host must have',
  }),
  near: sessionIdSchema.optional().meta({
    description:
      'Id of a session of the tenant on whose host this one would like to be. For 2 s from when it is ' +
      'next, it is left to that host; then any host takes it. The id is stored in clear.',
    otherwise: 'none',
  }),
});
