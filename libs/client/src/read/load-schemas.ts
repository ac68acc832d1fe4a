import { hostInfoSchema } from '@shellfleet/protocol';
import { z } from 'zod';

const tenantLoadSchema = z
  .object({
    tenant: z.string().meta({ description: 'Name of the tenant.' }),
    held: z.number().meta({ description: 'Sessions that hold a slot.' }),
    waiting: z.number().meta({ description: 'Sessions that wait for a slot.' }),
  })
  .meta({ id: 'TenantLoad' });

const sessionNumbersSchema = z
  .object({
    held: z.number().meta({ description: 'Sessions that hold a slot.' }),
    running: z.number().meta({ description: 'Sessions that run a command.' }),
    waiting: z.number().meta({ description: 'Sessions that wait for a slot.' }),
  })
  .meta({ id: 'SessionNumbers' });

const waitReasonSchema = z
  .object({
    reason: z.string().meta({ description: 'The reason, in a sentence.' }),
    sessions: z.number().meta({ description: 'Number of the sessions.' }),
  })
  .meta({ id: 'WaitReason' });

export const fleetLoadSchema = z
  .object({
    at: z.string().meta({ description: 'When it was read; ISO 8601, by the clock of this process.' }),
    hosts: z.array(hostInfoSchema).meta({ description: 'Hosts of the fleet, as `Fleet.hosts()` lists them.' }),
    tenants: z.array(tenantLoadSchema).meta({
      description:
        'Tenants whose sessions hold a slot or wait for one; those with the most waiting sessions come first.',
    }),
    sessions: sessionNumbersSchema.meta({ description: 'Numbers of sessions of all tenants.' }),
    commandsPerSecond: z
      .number()
      .meta({ description: 'Commands that ended on all hosts, per second, over the last 10 s.' }),
    waiting: z
      .array(waitReasonSchema)
      .meta({ description: 'Why sessions wait; the most frequent reason comes first.' }),
  })
  .meta({ id: 'FleetLoad', description: 'Load of a fleet with all its tenants, as read at one time.' });

export const tenantInfoSchema = z
  .object({
    openSessions: z.number().meta({ description: 'Sessions that hold a slot.' }),
    waitingSessions: z.number().meta({ description: 'Sessions that wait for a slot.' }),
    waitingCommands: z.number().exactOptional().meta({
      description: 'Commands that wait, as a host counted them in the last seconds. Absent while no host is up.',
    }),
    diskBytes: z.number().meta({
      description: 'Bytes that containers of open sessions have written to the disks of their hosts, as measured last.',
    }),
    processorMs: z
      .number()
      .meta({ description: 'Processor time in ms of all its sessions so far, on the hosts that are listed.' }),
    outputBytes: z
      .number()
      .meta({ description: 'Bytes of output of all its commands so far, on the hosts that are listed.' }),
    name: z.string().meta({ description: 'Name of the tenant.' }),
    weight: z.number().meta({
      description: "The tenant's share of the slots while others wait, relative to the weights of the others.",
    }),
    maxSessions: z
      .number()
      .optional()
      .meta({ description: 'Most sessions of the tenant that hold a slot at once. Absent: no limit.' }),
    maxQueued: z
      .number()
      .optional()
      .meta({ description: 'Most commands of the tenant that wait at once. Absent: no limit.' }),
    maxDiskBytes: z.number().optional().meta({
      description: "Bytes that containers of the tenant's sessions may have written in all. Absent: no limit.",
    }),
    idleTimeoutMs: z
      .number()
      .optional()
      .meta({ description: "Longest idle time in ms of the tenant's sessions. Absent: that of each session's spec." }),
  })
  .meta({
    id: 'TenantInfo',
    description: "What a tenant uses at present, and its part and quotas in the fleet's configuration.",
  });
