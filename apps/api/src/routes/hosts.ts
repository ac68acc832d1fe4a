import { hostIdSchema, hostInfoSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { route } from './route.ts';

const part = { id: hostIdSchema.meta({ description: 'Id of the host.' }) };
const asked = { 204: { description: 'The host was asked.' } };

const list = route({
  method: 'GET',
  path: '/hosts',
  scope: 'read',
  operationId: 'listHosts',
  summary: 'Lists the hosts of the fleet, with their last heartbeats',
  replies: { 200: { description: 'The hosts.', schema: z.object({ items: z.array(hostInfoSchema) }) } },
  async handler({ fleet }) {
    return { items: await fleet.hosts() };
  },
});

const drain = route({
  method: 'POST',
  path: '/hosts/{id}/drain',
  scope: 'admin',
  operationId: 'drainHost',
  summary: 'Asks a host to take no new session and no new tool call',
  params: part,
  body: z.strictObject({
    undo: z.boolean().optional().describe('Whether to withdraw an earlier request.'),
    forMs: z.number().int().optional().describe('Time after which the request ends.'),
  }),
  bodyOptional: true,
  replies: asked,
  async handler({ params, body, fleet }) {
    await fleet.drainHost(params.id, body);
  },
});

const cordon = route({
  method: 'POST',
  path: '/hosts/{id}/cordon',
  scope: 'admin',
  operationId: 'cordonHost',
  summary: 'Asks a host to take no session that it does not have already',
  params: part,
  replies: asked,
  async handler({ params, fleet }) {
    await fleet.cordonHost(params.id);
  },
});

const uncordon = route({
  method: 'POST',
  path: '/hosts/{id}/uncordon',
  scope: 'admin',
  operationId: 'uncordonHost',
  summary: 'Withdraws `cordon`',
  params: part,
  replies: asked,
  async handler({ params, fleet }) {
    await fleet.uncordonHost(params.id);
  },
});

const remove = route({
  method: 'DELETE',
  path: '/hosts/{id}',
  scope: 'admin',
  operationId: 'removeHost',
  summary: 'Removes a host from the list, until it is up again',
  params: part,
  replies: { 204: { description: 'The host is not in the list any more.' } },
  async handler({ params, fleet }) {
    await fleet.removeHost(params.id);
  },
});

export const hostRoutes = [list, drain, cordon, uncordon, remove];
