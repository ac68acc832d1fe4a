import type { Fleet, Session } from '@shellfleet/client';
import {
  labelsSchema,
  SESSION_STATES,
  ShellfleetError,
  sessionInfoSchema,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { flag, page, pageOf, sessionPart, toPage } from './parts.ts';
import { route } from './route.ts';

/** Labels in a query: `label=name%3Dvalue`, once or several times. */
const labels = z
  .union([z.string(), z.array(z.string())])
  .transform((given) => Object.fromEntries([given].flat().map((text) => splitLabel(text))))
  .pipe(labelsSchema)
  .optional()
  .meta({ description: '`name=value`: only sessions with this label. May be repeated.' });

const open = route({
  method: 'PUT',
  path: '/sessions/{id}',
  scope: 'submit',
  operationId: 'openSession',
  summary: 'Opens a session, or attaches to the open one',
  description:
    'Waits for no host: the first command asks for one. Without a body, an open session of any spec is returned.',
  params: sessionPart,
  body: sessionSpecSchema,
  bodyOptional: true,
  bodyError: 'SESSION_SPEC_INVALID',
  replies: {
    200: { description: 'The session was open already.', schema: sessionInfoSchema },
    201: { description: 'The session was opened.', schema: sessionInfoSchema },
  },
  async handler({ params, body, fleet, reply }) {
    const session = await fleet.session(params.id, body);
    reply.code(session.isNew ? 201 : 200);
    return session.info();
  },
});

const list = route({
  method: 'GET',
  path: '/sessions',
  scope: 'read',
  operationId: 'listSessions',
  summary: 'Lists the sessions of the tenant, in the order of their ids',
  query: {
    state: z.enum(SESSION_STATES).optional().describe('Only sessions in this state.'),
    all: flag('Also closed sessions whose output can still be read.'),
    label: labels,
    ...page,
  },
  replies: { 200: { description: 'One page of sessions.', schema: pageOf(sessionInfoSchema) } },
  async handler({ query: { state, all, label, ...place }, fleet }) {
    const read = (after: string) => fleet.sessions({ state, all, labels: label, after });
    return toPage(place, read, ({ id }) => id);
  },
});

const get = route({
  method: 'GET',
  path: '/sessions/{id}',
  scope: 'read',
  operationId: 'getSession',
  summary: 'Returns a session, open or closed',
  params: sessionPart,
  replies: { 200: { description: 'The session.', schema: sessionInfoSchema } },
  async handler({ params, fleet }) {
    return (await findSession(fleet, params.id)).info();
  },
});

const close = route({
  method: 'DELETE',
  path: '/sessions/{id}',
  scope: 'submit',
  operationId: 'closeSession',
  summary: 'Closes a session; its commands end as cancellations',
  description: 'Does nothing for a session that is closed or was never there.',
  params: sessionPart,
  query: { purge: flag('Also removes the containers that its hosts keep (`keepOnFailure`).') },
  replies: { 204: { description: 'The session is closed.' } },
  async handler({ params, query, fleet }) {
    const session = await fleet.attach(params.id);
    await session?.close();
    if (query.purge) await fleet.purge(params.id);
  },
});

const restart = route({
  method: 'POST',
  path: '/sessions/{id}/restart',
  scope: 'submit',
  operationId: 'restartSession',
  summary: 'Replaces the shell of a session, in order with its commands',
  params: sessionPart,
  replies: { 204: { description: 'The session has a fresh shell.' } },
  async handler({ params, fleet }) {
    await (await findSession(fleet, params.id)).restart();
  },
});

export const sessionRoutes = [open, list, get, close, restart];

/** Returns the newest session of an id, open or closed. Throws SESSION_NOT_FOUND. */
export async function findSession(fleet: Fleet, id: string): Promise<Session> {
  const session = await fleet.attach(id);
  if (session !== undefined) return session;
  throw new ShellfleetError('SESSION_NOT_FOUND', `There is no session ${id}.`, { sessionId: id });
}

function splitLabel(text: string): [string, string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
