import { z } from 'zod';
import { COLD_REASONS, SESSION_STATES, SHELL_WAYS } from './session-info.ts';

const keptSchema = z
  .object({
    hostId: z.string().meta({ description: 'Id of the host that has the container.' }),
    containerId: z
      .string()
      .meta({ description: 'Id of the container, for `docker cp`, `docker diff` and `docker export` on that host.' }),
    keptAt: z.string().meta({ description: 'Time of the end; ISO 8601, by the clock of the host.' }),
    reason: z.string().meta({ description: 'Why the container was kept, in words.' }),
  })
  .meta({
    id: 'KeptSandbox',
    description: 'A stopped container that its host keeps for a post-mortem (`keepOnFailure`).',
  });

/** What callers see of a session. */
export const sessionInfoSchema = z
  .object({
    id: z.string().meta({ description: 'Id of the session, which the caller chose.' }),
    tenant: z
      .string()
      .exactOptional()
      .meta({ description: 'Tenant of the session. Only in lists of the sessions of all tenants.' }),
    state: z.enum(SESSION_STATES).meta({ description: 'State of the session.' }),
    hostId: z.string().nullable().meta({ description: "Id of the session's host, or null." }),
    epoch: z.number().meta({ description: 'Number of shells that the session has had.' }),
    queuedCommands: z.number().meta({ description: 'Waiting entries: commands, file operations, restarts.' }),
    position: z
      .number()
      .exactOptional()
      .meta({
        description:
          'Position from 1 in the order in which slots are given, among the waiting sessions of all tenants ' +
          'that the same hosts could take. Absent outside the queue.',
      }),
    queueLength: z
      .number()
      .exactOptional()
      .meta({ description: 'Number of these sessions, including this one. Absent when `position` is absent.' }),
    etaMs: z.number().exactOptional().meta({
      description: 'Estimated wait in ms, if slots are freed as often as recently. Absent before any slot was freed.',
    }),
    atQuota: z
      .object({ quota: z.literal('maxSessions'), used: z.number(), limit: z.number() })
      .exactOptional()
      .meta({
        description:
          'Quota for which the session waits, although hosts may have free slots: `used` of `limit`. Absent ' +
          'when it does not wait for one.',
      }),
    noHostReason: z
      .string()
      .exactOptional()
      .meta({
        description:
          'Why no live host can run the session, in a sentence. Absent when a host can run it, or when its ' +
          'own host is alive.',
      }),
    waitsFor: z
      .string()
      .exactOptional()
      .meta({
        description:
          'What its Pod waits for while the shell is opened, in the words of the scheduler, the kubelet or ' +
          'the quota. Absent when nothing is known, and where shells are not in a cluster.',
      }),
    needs: z
      .record(z.string(), z.string())
      .exactOptional()
      .meta({
        description:
          'What a host must have to take the session, by field of the spec. Only in the info of one session ' +
          'that waits for a host, and if this process can open its spec.',
      }),
    wishes: z
      .object({ image: z.string().exactOptional(), near: z.string().exactOptional() })
      .exactOptional()
      .meta({
        description:
          'What the session would like of its host: to have the image already, and the session `near`. It is ' +
          'left to such a host for 2 s from when it is next. Absent like `needs`, or if it wishes for nothing.',
      }),
    runningCommandId: z.string().exactOptional().meta({ description: 'The command that runs. Absent when none does.' }),
    heldCommandId: z
      .string()
      .exactOptional()
      .meta({ description: 'The first waiting command, while it waits for an approval. Absent when none does.' }),
    background: z.array(z.object({ pid: z.number(), command: z.string() })).meta({
      description:
        'Processes that still run although the command that started them has ended. The pids are those in ' +
        'the sandbox.',
    }),
    backgroundUnknown: z.literal(true).exactOptional().meta({
      description: 'True when `background` is not known: the host was not asked (in lists), or did not answer in time.',
    }),
    way: z
      .enum(SHELL_WAYS)
      .exactOptional()
      .meta({
        description:
          'How commands get into its shell. Absent when that is not known: before its first command, and when the ' +
          'host was not asked (in lists), or did not answer in time.',
      }),
    image: z.string().exactOptional().meta({
      description:
        'Image of the container, by the name under which the host found it. Absent before the first container.',
    }),
    imageDigest: z
      .string()
      .exactOptional()
      .meta({ description: "Digest of the container's image. The name in `image` may now refer to another image." }),
    node: z.string().exactOptional().meta({
      description: 'Node of the cluster on which the last shell was ready. Absent where shells are not in a cluster.',
    }),
    start: z
      .enum(['warm', 'cold'])
      .exactOptional()
      .meta({
        description:
          'Whether its shell was ready before the session asked, in a pool of its host, or was made for it. ' +
          'Absent before its first shell.',
      }),
    coldReason: z
      .enum(COLD_REASONS)
      .exactOptional()
      .meta({ description: 'Why the shell was made for the session. Absent unless `start` is `cold`.' }),
    labels: z.record(z.string(), z.string()).meta({ description: 'Labels of the spec.' }),
    kept: z
      .array(keptSchema)
      .exactOptional()
      .meta({ description: "The session's containers that are kept for a post-mortem. Absent when there is none." }),
    createdAt: z.string().meta({ description: 'When the session was opened; ISO 8601, by the clock of Redis.' }),
    lastActiveAt: z.string().meta({ description: 'Time of the newest event; ISO 8601.' }),
    closedAt: z
      .string()
      .exactOptional()
      .meta({ description: 'When the session was closed; ISO 8601. Absent while it is open.' }),
    closeReason: z
      .string()
      .exactOptional()
      .meta({ description: 'Why the session was closed, in a few words. Absent while it is open.' }),
  })
  .meta({ id: 'SessionInfo' });
