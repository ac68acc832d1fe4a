import { SCOPES } from '@shellfleet/protocol';
import { z } from 'zod';
import { route } from './route.ts';

const meSchema = z
  .object({
    name: z.string().describe('Name of the key, or of the person.'),
    tenant: z.string().describe('Tenant whose sessions the caller reaches.'),
    scopes: z.array(z.enum(SCOPES)).describe('What the caller may do.'),
    expiresAt: z.iso.datetime().optional().describe('When the key expires. Absent: it works until it is revoked.'),
  })
  .meta({ id: 'Me' });

export const meRoutes = [
  route({
    method: 'GET',
    path: '/me',
    scope: 'any',
    operationId: 'getMe',
    summary: 'Tells whose key it is, and what it may do',
    replies: { 200: { description: 'The caller.', schema: meSchema } },
    async handler({ principal: { caller, tenant, scopes, expiresAt } }) {
      return {
        ...{ name: caller.name, tenant, scopes: SCOPES.filter((scope) => scopes.has(scope)) },
        ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
      };
    },
  }),
];
