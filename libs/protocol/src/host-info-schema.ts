import { z } from 'zod';
import { hostGateSchema, hostPoolSchema, runningPullSchema } from './host-parts.ts';

export const hostInfoSchema = z
  .object({
    id: z.string().meta({ description: 'Name of the host, `SHELLFLEET_HOST_ID`.' }),
    state: z.enum(['up', 'draining', 'unreachable']).meta({
      description:
        'State of the host. `draining`: it takes no new session. `unreachable`: its last heartbeat is too old.',
    }),
    cordoned: z
      .literal(true)
      .exactOptional()
      .meta({
        description:
          'True while an operator has cordoned the host: it keeps its sessions and takes no other. Absent ' +
          'otherwise.',
      }),
    slots: z.number().meta({
      description:
        'Sessions with a shell that the host can have at once, `SHELLFLEET_SLOTS`, while it has room for them.',
    }),
    free: z.number().meta({ description: 'Number of free slots.' }),
    sessions: z.number().meta({ description: 'Sessions of all tenants that hold a slot.' }),
    running: z.number().meta({ description: 'How many of these sessions run a command.' }),
    held: z.number().exactOptional().meta({
      description: 'How many sessions with a shell have a command that waits for an approval. Absent when none does.',
    }),
    commandsPerSecond: z
      .number()
      .meta({ description: 'Commands that ended on the host per second, over the last 10 s.' }),
    policies: z
      .array(z.string())
      .meta({ description: 'Execution policies that the operator allows, `SHELLFLEET_POLICIES`.' }),
    labels: z.record(z.string(), z.string()).exactOptional().meta({
      description: 'Labels that sessions may ask for, `labels` of its configuration file. Absent when it has none.',
    }),
    version: z.string().meta({ description: 'Version of the worker.' }),
    configuration: z
      .number()
      .meta({ description: "Revision of the fleet's configuration that the host uses; 0 for the defaults." }),
    seenAt: z.string().meta({ description: 'Time of the last heartbeat; ISO 8601.' }),
    problems: z.array(z.string()).exactOptional().meta({
      description: 'Why the host takes no new session at present, one sentence each. Absent when it takes them.',
    }),
    gate: hostGateSchema
      .exactOptional()
      .meta({ description: 'What decides whether the host takes a further session. Absent when it is unreachable.' }),
    warnings: z.array(z.string()).exactOptional().meta({
      description: 'Sentences that tell the operator what to repair. In spite of them the host takes sessions.',
    }),
    pulls: z
      .array(runningPullSchema)
      .exactOptional()
      .meta({ description: 'Images that the host pulls at present. Absent when it pulls none.' }),
    pools: z.array(hostPoolSchema).exactOptional().meta({ description: 'Pools of the host. Absent when it has none.' }),
  })
  .meta({ id: 'HostInfo', description: 'A host of the fleet, as its last heartbeat describes it.' });
