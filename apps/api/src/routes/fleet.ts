import { fleetLoadSchema, tenantInfoSchema } from '@shellfleet/client';
import { ShellfleetError } from '@shellfleet/protocol';
import { z } from 'zod';
import { sendEvents } from '../streams/send-events.ts';
import { resumingAfter } from './parts.ts';
import { route } from './route.ts';

const count = z.number().int();

const queue = route({
  method: 'GET',
  path: '/queue',
  scope: 'admin',
  operationId: 'getQueue',
  summary: 'Tells how many sessions of each tenant wait for a slot, and why',
  replies: {
    200: {
      description: 'The queue of all tenants.',
      schema: fleetLoadSchema.omit({ hosts: true }).meta({ id: 'Queue' }),
    },
  },
  async handler({ fleet }) {
    const { hosts: _hosts, ...load } = await fleet.load();
    return load;
  },
});

const tenants = route({
  method: 'GET',
  path: '/tenants',
  scope: 'admin',
  operationId: 'listTenants',
  summary: 'Lists the tenants, with what they use and their quotas',
  replies: {
    200: {
      description: 'The tenants.',
      schema: z.object({
        items: z.array(tenantInfoSchema),
      }),
    },
  },
  async handler({ fleet }) {
    return { items: await fleet.tenants() };
  },
});

const scale = route({
  method: 'GET',
  path: '/scale',
  scope: 'admin',
  operationId: 'getScale',
  summary: 'Tells an autoscaler what sessions hold and wait for, as `/scale` of a worker',
  description: 'Replies 503 while no host has counted what waits: nothing must scale down then.',
  replies: {
    200: {
      description: 'The demand of the fleet.',
      schema: z
        .looseObject({ at: z.string(), demand: count, held: count, waiting: count, slots: count, free: count })
        .meta({ id: 'FleetDemand' }),
    },
  },
  async handler({ fleet }) {
    const demand = await fleet.demand();
    if (demand !== undefined) return demand;
    throw new ShellfleetError('HOST_UNREACHABLE', 'No host has counted the waiting sessions yet.');
  },
});

const events = route({
  method: 'GET',
  path: '/events',
  scope: 'admin',
  operationId: 'followFleet',
  summary: 'Streams what happens in the fleet, of all tenants',
  description:
    'Sessions open, are lost and close, commands end, people are asked and answer, hosts come and go. After the id of an event, events from two seconds before it on come first, so that none is missing; ids tell those that a client has.',
  ...resumingAfter(/^\d{1,15}(?:-\d{1,20})?$/),
  replies: { 200: { description: 'The events, as FleetEvent of the SDK.', type: 'text/event-stream' } },
  async handler(call) {
    const { headers, query, fleet } = call;
    const from = headers['last-event-id'] ?? query.after;
    return sendEvents(call, async function* (signal) {
      for await (const event of fleet.events({ allTenants: true, after: from, signal }))
        yield { id: 'id' in event ? event.id : undefined, type: event.type, data: event };
    });
  },
});

export const fleetRoutes = [queue, tenants, scale, events];
