import { APPROVAL_SCOPES, type Approval, approvalSchema, sessionIdSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { sendEvents } from '../streams/send-events.ts';
import { page, pageOf, toPage } from './parts.ts';
import { route } from './route.ts';

const reads = ['read', 'approve'] as const;
const part = { id: z.string().min(1).max(128).describe('Id of the question.') };
const answered = { 204: { description: 'A host has applied the answer, or will.' } };

const list = route({
  method: 'GET',
  path: '/approvals',
  scope: reads,
  operationId: 'listApprovals',
  summary: 'Lists the questions that wait for a person, the oldest first',
  query: {
    sessionId: sessionIdSchema.optional().meta({ description: 'Only questions that this session asks.' }),
    state: z.enum(['pending', 'approved']).optional().describe('`approved`: the approvals that hold instead.'),
    ...page,
  },
  replies: { 200: { description: 'One page of questions.', schema: pageOf(approvalSchema) } },
  async handler({ query: { sessionId, state, ...place }, fleet }) {
    const all = await fleet.approvals.list({ sessionId, state });
    return toPage(place, (after) => all.filter((one) => keyOf(one) > after), keyOf);
  },
});

const watch = route({
  method: 'GET',
  path: '/approvals/events',
  scope: reads,
  operationId: 'watchApprovals',
  summary: 'Streams the questions of the tenant',
  description:
    'Begins with every question that waits, then has each one that is asked or changes. A client that connects again gets what waits then.',
  replies: {
    200: { description: 'Events of the type `approval`.', type: 'text/event-stream', schema: approvalSchema },
  },
  async handler(call) {
    return sendEvents(call, async function* (signal) {
      for await (const approval of call.fleet.approvals.watch({ signal })) yield { type: 'approval', data: approval };
    });
  },
});

const approve = route({
  method: 'POST',
  path: '/approvals/{id}/approve',
  scope: 'approve',
  operationId: 'approve',
  summary: 'Approves a question, in the name of the key',
  params: part,
  body: z.strictObject({
    scope: z.enum(APPROVAL_SCOPES).optional().describe('What is approved. Default: the commands that ask now.'),
  }),
  bodyOptional: true,
  replies: answered,
  async handler({ params, body, fleet }) {
    await fleet.approvals.approve(params.id, body);
  },
});

const deny = route({
  method: 'POST',
  path: '/approvals/{id}/deny',
  scope: 'approve',
  operationId: 'deny',
  summary: 'Denies a question, in the name of the key',
  params: part,
  body: z.strictObject({
    reason: z.string().max(1_024).optional().describe('Why, for the Result.'),
    abort: z.boolean().optional().describe('Whether to cancel the commands that wait behind the question.'),
  }),
  bodyOptional: true,
  replies: answered,
  async handler({ params, body, fleet }) {
    await fleet.approvals.deny(params.id, body?.reason, { abort: body?.abort });
  },
});

const revoke = route({
  method: 'POST',
  path: '/approvals/{id}/revoke',
  scope: 'approve',
  operationId: 'revokeApproval',
  summary: 'Revokes an approval that holds',
  params: part,
  replies: { 204: { description: 'No host starts another command on it.' } },
  async handler({ params, fleet }) {
    await fleet.approvals.revoke(params.id);
  },
});

export const approvalRoutes = [list, watch, approve, deny, revoke];

/** Returns the place of a question in the list, which is in the order of time. */
const keyOf = ({ askedAt, id }: Approval) => `${askedAt} ${id}`;
