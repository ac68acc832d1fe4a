import { z } from 'zod';
import { wireErrorSchema } from './errors.ts';
import { receiptSchema } from './receipt-schema.ts';

// The schemas of a Result as a caller gets it. Results that are stored have a schema of their own, `wireResultSchema`.

const usageSchema = z
  .object({
    cpuMs: z.number().meta({
      description:
        'Processor time in ms from the start of the command to its end, of all processes of the sandbox: ' +
        'also of those that earlier commands left in the background, of terminals and of file operations.',
    }),
    peakMemoryBytes: z.number().meta({
      description:
        'Highest memory of the sandbox in bytes, from the start of the sandbox to the end of the command. ' +
        'It includes cached files, so it may exceed what the processes allocated. A command that did not ' +
        'need more than an earlier one of its sandbox has the same peak.',
    }),
  })
  .meta({
    id: 'Usage',
    description:
      'What the sandbox of a session used while a command ran, as the kernel counts it for the whole sandbox.',
  });

const sandboxDeniedSchema = z
  .object({
    what: z.enum(['files', 'network', 'system-call']).meta({ description: 'What the sandbox withheld.' }),
    line: z.string().meta({ description: 'Line of the output that reports the denial.' }),
    mayAsk: z
      .boolean()
      .meta({ description: 'Whether a person would be asked about the same command with `escalate`.' }),
  })
  .meta({
    id: 'SandboxDenied',
    description: 'A denial by the sandbox, guessed from text that a program may also print without one.',
  });

const firstAttemptSchema = z
  .object({
    exitCode: z.number().nullable().meta({ description: 'Exit code.' }),
    output: z.string().meta({ description: 'End of the output, redacted.' }),
  })
  .meta({ id: 'FirstAttempt', description: 'How the first attempt of a command ended.' });

const blockedOutputSchema = z
  .object({
    type: z.string().meta({ description: 'Type of the rule.' }),
    reason: z.enum(['matched', 'too-slow']).meta({
      description:
        'Reason of the block. `matched`: the rule found something. `too-slow`: the rule could not keep up ' +
        'with the output.',
    }),
  })
  .meta({ id: 'BlockedOutput', description: 'Why output is withheld.' });

export const resultFieldsSchema = z
  .object({
    commandId: z.string().meta({ description: 'Id of the command, `<session>.<ULID>`, for `fleet.command`.' }),
    sessionId: z.string().meta({ description: 'The session in which the command ran.' }),
    signal: z
      .string()
      .nullable()
      .meta({
        description:
          'Signal that ended the command, such as `SIGKILL`, if its shell noticed the signal. A signal that ' +
          'ended a program is reported as exit code 128 plus its number.',
      }),
    stdout: z.string().meta({
      description:
        "Redacted stdout, within the session's `output.maxBytes` and `output.maxLines`, in `encoding` of " +
        'the options.',
    }),
    stderr: z.string().meta({ description: 'Redacted stderr, within the same limits.' }),
    output: z.string().meta({ description: 'Both streams in the order in which redaction released them.' }),
    truncated: z
      .object({ bytes: z.boolean(), lines: z.boolean() })
      .meta({ description: "Whether a text above is shorter than the command's output. `command.log` has the rest." }),
    totals: z
      .object({ stdoutBytes: z.number(), stderrBytes: z.number(), stdoutLines: z.number(), stderrLines: z.number() })
      .meta({ description: "Bytes and lines of the command's output, after redaction." }),
    redactions: z
      .record(z.string(), z.number())
      .meta({ description: 'Number of redactions, by the type of their rule. It never contains a redacted value.' }),
    deduplicated: z.boolean().meta({
      description: 'Whether the submit found this command by its idempotency key, so that no new command was accepted.',
    }),
    shell: z
      .object({ state: z.enum(['kept', 'partial', 'lost']), reason: z.string().optional(), epoch: z.number() })
      .meta({
        description:
          'State of the shell afterwards. `kept`; `partial`: some of it could not be saved; `lost`: the next ' +
          "command gets a fresh one. `reason` says why, in words. `epoch` counts the session's shells from 1; " +
          'it is 0 when no shell is concerned.',
      }),
    timings: z.object({ queuedMs: z.number(), startMs: z.number(), runMs: z.number(), totalMs: z.number() }).meta({
      description:
        'Times in ms from acceptance: the wait for turn and slot, the opening of the shell, the run, and ' +
        'the sum of the three.',
    }),
    receipt: receiptSchema.optional().meta({
      description: 'Where its time went, also after its end. Absent only if the record of the command was damaged.',
    }),
    usage: usageSchema.optional().meta({
      description:
        'What the sandbox used while the command ran. Absent when it did not run, or the kernel does not ' +
        'count it.',
    }),
    hostId: z.string().nullable().meta({ description: 'Id of the host that ran the command, or null.' }),
    imageDigest: z
      .string()
      .optional()
      .meta({ description: "Digest of the container's image, `sha256:…`. Absent without a container." }),
    attempts: z
      .number()
      .optional()
      .meta({
        description:
          "Number of starts, if more than one: with `retry: 'idempotent'`, or with a second attempt outside " +
          'the sandbox.',
      }),
    outside: z
      .literal(true)
      .optional()
      .meta({ description: 'True when the command ran outside the sandbox of its session.' }),
    denied: sandboxDeniedSchema.optional().meta({
      description: 'Denial by the sandbox, guessed from the output. Present only for a `failure` inside the sandbox.',
    }),
    refused: z
      .string()
      .optional()
      .meta({ description: 'Why a requested second attempt outside the sandbox did not take place, in words.' }),
    firstAttempt: firstAttemptSchema.optional().meta({
      description:
        'Exit code and last 500 bytes of the first attempt. The rest of the Result is about the second attempt.',
    }),
    blocked: blockedOutputSchema.optional().meta({
      description:
        'The rule that withholds further output. Always set for `blocked`. A stopped or lost command may ' +
        'have it too.',
    }),
  })
  .meta({ id: 'ResultFields', description: 'The fields of every Result.' });

const noExitCode = z.null().meta({ description: 'Null, since there is no exit code.' });
const howItEnded = z.enum(['exited', 'signalled', 'oom', 'host-memory']).meta({
  description:
    'How the command ended. The kernel killed one of its processes because the sandbox reached its limit of memory ' +
    '(`oom`), or because the memory of the whole host ran out (`host-memory`).',
});

const successSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('success'),
    exitCode: z.number().meta({ description: '0' }),
    reason: z.literal('exited'),
  })
  .meta({ id: 'SuccessResult', description: 'Result of a command that ended by itself with exit code 0.' });

const failureSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('failure'),
    exitCode: z.number().meta({
      description: '1 to 255. If a signal ended the command, 128 plus the number of the signal.',
    }),
    reason: howItEnded,
  })
  .meta({
    id: 'FailureResult',
    description: 'Result of a command that ended with another exit code, by a signal, or because memory ran out.',
  });

const timeoutSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('timeout'),
    exitCode: noExitCode,
    reason: z.enum(['wall', 'no-output', 'not-started']).meta({
      description:
        'The limit: `timeoutMs` (`wall`), `noOutputTimeoutMs`, or `startDeadlineMs` (`not-started`: it was not run).',
    }),
    limitMs: z.number().optional().meta({
      description: 'The limit in ms. Absent when the command had not started.',
    }),
  })
  .meta({
    id: 'TimeoutResult',
    description: 'Result of a command that was stopped at a limit of time, or had not started by its start deadline.',
  });

const cancellationSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('cancellation'),
    exitCode: noExitCode,
    reason: z.literal('cancelled'),
    cancelReason: z.string().optional().meta({
      description:
        'Why the command was cancelled: the words of the caller that cancelled it, or that its host was shut down.',
    }),
  })
  .meta({
    id: 'CancellationResult',
    description: 'Result of a command that was cancelled, before or after its start.',
  });

const denialSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('denial'),
    exitCode: noExitCode,
    reason: z.enum(['rules', 'approver']).meta({ description: 'What denied it: rules, or a person.' }),
  })
  .meta({
    id: 'DenialResult',
    description: 'Result of a command that rules or an approver denied, so that nothing ran. `stderr` says why.',
  });

const blockedSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('blocked'),
    exitCode: z.number().meta({ description: 'Exit code of the command, 0 to 255.' }),
    reason: howItEnded,
    blocked: blockedOutputSchema.meta({ description: 'The rule that withholds further output.' }),
  })
  .meta({
    id: 'BlockedResult',
    description: 'Result of a command that ended by itself, and whose output a redaction rule withholds.',
  });

const lostSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('lost'),
    exitCode: noExitCode,
    reason: z.enum(['host-lost', 'container-removed']).optional().meta({
      description: 'What was lost. Absent when Redis came back with an older state.',
    }),
  })
  .meta({
    id: 'LostResult',
    description:
      'Result of a command that started, and whose end is not known. It may have taken effect, and is not run again.',
  });

const errorSchema = z
  .object({
    ...resultFieldsSchema.shape,
    outcome: z.literal('error'),
    exitCode: noExitCode,
    reason: z.enum(['oom', 'host-memory', 'disk', 'container-removed']).optional().meta({
      description: 'What happened to the sandbox. Absent when nothing happened to it.',
    }),
    error: wireErrorSchema.meta({ description: 'The error; docs/errors.md lists the codes.' }),
  })
  .meta({
    id: 'ErrorResult',
    description: 'Result when the fleet failed: the command was not run, or its shell was lost while it ran.',
  });

export const resultSchema = z
  .discriminatedUnion('outcome', [
    successSchema,
    failureSchema,
    timeoutSchema,
    cancellationSchema,
    denialSchema,
    blockedSchema,
    lostSchema,
    errorSchema,
  ])
  .meta({
    id: 'Result',
    description: 'Everything known about an ended command. The `outcome` tells which of the types it is.',
  });
